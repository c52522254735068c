"""Markers by backend, skips that say what is missing, and what several tests share."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import hypothesis
import pytest
from commands import Finished, run_command

from py_backends import _discovery
from py_backends._contract import Target
from py_backends.harness import machine
from py_backends.harness.doctor import BackendTarget, backends
from py_backends.harness.runner import Runner

# The same examples in every run, so that what fails was changed; and no test looks at the clock.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.load_profile("repeatable")


BROWSER = "browser"
"""The marker of tests that open a page."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-backend",
        action="append",
        default=[],
        metavar="NAME",
        help="fail, instead of skipping, where this backend is not there (repeatable)",
    )
    parser.addoption(
        "--require-browser", action="store_true", help="fail, instead of skipping, where there is no browser"
    )


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As for whatever a shell script starts in the background. What tests interrupt would have inherited it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in _discovery.backend_names():
        config.addinivalue_line("markers", f"{name}: needs the backend {name}")
    config.addinivalue_line("markers", f"{BROWSER}: opens a page in a headless Chromium")
    for name in config.getoption("--require-backend"):
        try:
            _discovery.known(name, _discovery.backend_names(), "backend")
        except ValueError as unknown:
            raise pytest.UsageError(f"--require-backend: {unknown}") from None


@cache
def found() -> list[BackendTarget]:
    """What this machine has, probed once a test session."""
    return backends()


def targets_of(backend: str) -> list[Target]:
    return [target for name, target in found() if name == backend]


def at_hand() -> list[BackendTarget]:
    """What tests run on: the targets that are there, and of a backend without any the one that says why."""
    return [
        BackendTarget(name, target)
        for name, target in found()
        if target.available or (target is targets_of(name)[0] and not any(each.available for each in targets_of(name)))
    ]


def marked_backends() -> list[object]:
    """Every backend as a parameter that carries its marker."""
    return [pytest.param(name, marks=getattr(pytest.mark, name)) for name in _discovery.backend_names()]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, or fail where it is required, a test whose backend or target is not there."""
    for name in _discovery.backend_names():
        if item.get_closest_marker(name):
            reason = _what_is_missing(name, _target_of(item))
            if reason:
                skip_or_fail(item.config, name, reason)
    if item.get_closest_marker(BROWSER) and (reason := _why_no_browser()):
        if item.config.getoption("--require-browser"):
            pytest.fail(f"a browser is required but not there: {reason}", pytrace=False)
        pytest.skip(f"browser: {reason}")


def skip_or_fail(config: pytest.Config, backend: str, reason: str) -> NoReturn:
    """Skip a test for what is missing; fail it where the backend is required and has no device of its own.

    With one that is there, the others may be missing: a CPU need not have every instruction set.
    """
    if backend in config.getoption("--require-backend") and not has_device(backend):
        pytest.fail(f"{backend} is required but not there: {reason}", pytrace=False)
    pytest.skip(f"{backend}: {reason}")


def has_device(backend: str) -> bool:
    """Whether a backend has a target that is not emulated."""
    return any(target.available and not target.emulated for target in targets_of(backend))


def chromium() -> str | None:
    """The path of a Chromium that the system has."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


def _why_no_browser() -> str | None:
    if chromium() is None:
        return "no Chromium on this machine (to change that: apt-get install chromium)"
    if importlib.util.find_spec("playwright") is None:
        return 'playwright is not installed (to change that: pip install "py-backends[test]")'
    return None


def _target_of(item: pytest.Item) -> Target | None:
    call = getattr(item, "callspec", None)
    target = call.params.get("target") if call else None
    return target if isinstance(target, Target) else None


def _what_is_missing(backend: str, target: Target | None) -> str | None:
    candidates = [target] if target else targets_of(backend)
    if any(candidate.available for candidate in candidates):
        return None
    missing = candidates[0]
    return f"{missing.reason} (to change that: {missing.fix})"


@pytest.fixture(scope="session", autouse=True)
def _keep_compiled_sycl(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let the SYCL runtime keep what it compiles for the session, since every worker compiles anew."""
    os.environ.setdefault("SYCL_CACHE_PERSISTENT", "1")
    os.environ.setdefault("SYCL_CACHE_DIR", str(tmp_path_factory.mktemp("sycl-cache")))


@pytest.fixture(scope="session")
def runner() -> Iterator[Callable[[str, Target], Runner]]:
    """A way to any (backend, target), with one worker each for the whole session."""
    runners: dict[tuple[str, str], Runner] = {}

    def get(backend: str, target: Target) -> Runner:
        return runners.setdefault((backend, target.name), Runner(backend, target, machine.cpus()))

    yield get
    for each in runners.values():
        each.close()


@dataclass(frozen=True)
class Comparison:
    """A run of `compare` that has a row of every status that a sound machine knows, and its files."""

    run: Finished
    json: Path
    csv: Path
    markdown: Path

    @property
    def result(self) -> Any:
        return json.loads(self.json.read_text(encoding="utf-8"))

    @property
    def rows(self) -> list[Any]:
        return list(self.result["rows"])


@pytest.fixture(scope="session")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """One comparison for all tests that look at what comes out of it."""
    folder = tmp_path_factory.mktemp("comparison")
    files = folder / "results.json", folder / "results.csv", folder / "results.md"
    too_large = f"matmul={2**20}x{2**20}x0"  # nothing to compute, and terabytes of zeros to write
    run = run_command(
        *("compare", "--backend", "numba_cuda,numpy,opencl,python,sycl", "--dtype", "all", "--variant", "all"),
        *("--shape", "matmul=9x10x11", "--shape", too_large, "--shape", "vecadd=521", "--budget", "4", "--seed", "3"),
        *("--json", files[0], "--csv", files[1], "--markdown", files[2]),
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return Comparison(run, *files)
