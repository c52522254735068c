"""The pytest plug-in: options, a marker for each backend, skips that say what is missing, and the summary.

The project's own tests load it too, for its markers, skips and workers.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import pytest

from py_backends import registry
from py_backends.conformance.at_hand import has_device, why_missing
from py_backends.conformance.calls import CallKind
from py_backends.conformance.runners import Runners
from py_backends.conformance.running import Arenas, Outcome
from py_backends.conformance.selection import Selection, Subject
from py_backends.conformance.tally import as_property, from_properties, summary, tally
from py_backends.conformance.trials import DTYPES, Kind
from py_backends.contract import Target
from py_backends.errors import BackendUnavailable, BrokenKernel, WrongRequest
from py_backends.harness.runner import Runner
from py_backends.harness.workers import WorkerFailed
from py_backends.kernel_text import KernelText

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet

SELECTION = pytest.StashKey[Selection]()
_LISTS = {
    "backend": "backends that the suite tries, and that must be there",
    "target": "targets that it tries",
    "kernel": "kernels that it tries",
    "variant": "variants of their texts",
    "kind": "kinds of cases",
}
_SUITE = str(Path(__file__).parent)
_HANGS = pytest.StashKey[Counter[str]]()
_MOST_HANGS = 2
"""Kinds in which a text may hang before it is not run any more."""
_COUNTED: list[pytest.TestReport] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    """The suite's options, and one for all tests that need a backend."""
    group = parser.getgroup("py-backends", "conformance of backends")
    for name, what in _LISTS.items():
        group.addoption(
            f"--{name}",
            action="append",
            default=[],
            metavar="NAMES",
            help=f"{what}: a list separated by commas, repeatable; all where there is none",
        )
    group.addoption("--case", metavar="TEXT", help="only cases of the suite whose names contain this")
    group.addoption("--quick", dest="quick", action="store_true", help="the cases that belong into every run of a CI")
    group.addoption("--thorough", dest="quick", action="store_false", help="all cases of the suite; the default")
    group.addoption(
        "--patience",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="after which a case that has not ended is taken for hung (default: 60)",
    )
    group.addoption(
        "--conformance-json",
        type=Path,
        metavar="FILE",
        help="write what held and what did not, an object for each kind",
    )
    group.addoption(
        "--require-backend",
        action="append",
        default=[],
        metavar="NAME",
        help="fail, instead of skipping, where this backend is not there (repeatable)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register a marker for every backend, and refuse what is nothing's name."""
    for name in registry.backend_names():
        config.addinivalue_line("markers", f"{name}: needs the backend {name}")
    for name in config.getoption("--require-backend"):
        _known_or_usage_error("--require-backend: ", partial(registry.known_backend, name))
    chosen = {f"{name}s": _names(config, name) for name in _LISTS}
    selection = Selection(
        **chosen,
        case=config.getoption("--case"),
        quick=config.getoption("quick"),
        patience=config.getoption("--patience"),
    )
    _known_or_usage_error("", selection.check)
    config.stash[SELECTION] = selection
    config.stash[_HANGS] = Counter()
    _COUNTED.clear()


def _names(config: pytest.Config, option: str) -> tuple[str, ...]:
    given = ",".join(config.getoption(f"--{option}"))
    return tuple(name for each in given.split(",") if (name := each.strip()))


def _known_or_usage_error(prefix: str, check: Callable[[], object]) -> None:
    try:
        check()
    except (WrongRequest, BackendUnavailable, BrokenKernel) as wrong:
        raise pytest.UsageError(f"{prefix}{wrong}") from None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of the suite for which the options chose nothing, of which pytest would make skips.

    Where they chose nothing at all, that is wrong usage: it would look like a success.
    """
    unused = {item for item in items if _SUITE in str(item.path) and item.name.endswith("[NOTSET]")}
    items[:] = [item for item in items if item not in unused]
    just_in_time_last(items)
    selection = config.stash[SELECTION]
    asked = {"--kind": ", ".join(selection.kinds), "--case": selection.case}
    given = [f"{option} {value}" for option, value in asked.items() if value]
    if unused and given and any(selection.subjects()) and not any(map(_subject_of, items)):
        raise pytest.UsageError(f"there is no case of {' and '.join(given)} in what else was chosen")


def just_in_time_last(items: list[pytest.Item]) -> None:
    """Order the tests of texts: those that are compiled meanwhile change places with those that are there at once."""
    places = [at for at, item in enumerate(items) if _subject_of(item)]
    for at, item in zip(places, sorted((items[at] for at in places), key=_is_just_in_time), strict=True):
        items[at] = item


def _subject_of(item: pytest.Item) -> Subject | None:
    """Whose test it is; None where it is not one of the suite for a text."""
    call = getattr(item, "callspec", None)
    subject = call.params.get("subject") if call else None
    return subject if isinstance(subject, Subject) else None


def _is_just_in_time(item: pytest.Item) -> bool:
    subject = _subject_of(item)
    return subject is not None and subject.target.just_in_time


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, or fail where it is required, a test whose backend or target is not there."""
    for name in registry.backend_names():
        if item.get_closest_marker(name):
            reason = why_missing(name, _target_of(item))
            if reason:
                skip_or_fail(item.config, name, reason)


def skip_or_fail(config: pytest.Config, backend: str, reason: str) -> NoReturn:
    """Skip a test for what is missing; fail it where that is required.

    With a device that is there, other targets may be missing: a CPU need not have every instruction set. What the
    suite is to try, by `--backend` or `--target`, must be there.
    """
    selection = config.stash[SELECTION]
    chosen = bool(selection.targets) or (backend in selection.backends and why_missing(backend))
    if chosen or (backend in config.getoption("--require-backend") and not has_device(backend)):
        pytest.fail(f"{backend} is required but not there: {reason}", pytrace=False)
    pytest.skip(f"{backend}: {reason}")


def _target_of(item: pytest.Item) -> Target | None:
    call = getattr(item, "callspec", None)
    target = call.params.get("target") if call else None
    return target if isinstance(target, Target) else None


def able_dtypes(config: pytest.Config, subject: Subject, runner: Runner, wanted: Sequence[str]) -> list[str]:
    """Those of the wanted dtypes in which a target can compute a text: many GPUs have no float64.

    Skips the test where there are none; fails it where the target, said to be available, can compute in no dtype at
    all, if the suite is to try it.
    """
    text, target = subject
    why = {dtype: _why_unable(runner, text, dtype) for dtype in wanted}
    if able := [dtype for dtype in wanted if why[dtype] is None]:
        return able
    selection = config.stash[SELECTION]
    chosen = text.backend in selection.backends or target.name in selection.targets
    if chosen and all(_why_unable(runner, text, dtype) for dtype in DTYPES):
        pytest.fail(f"{subject.label} is said to be available, and can compute in no dtype: {why}", pytrace=False)
    pytest.skip(f"{text.backend}: {', '.join(filter(None, why.values()))}")


def _why_unable(runner: Runner, text: KernelText, dtype: str) -> str | None:
    """Why a device cannot compute in a dtype; None where it can, and where preparing fails in another way."""
    try:
        runner.compile(text, np.dtype(dtype))
    except WorkerFailed as failed:
        fix = f" (to change that: {failed.fix})" if failed.fix else ""
        return f"{failed.reason}{fix}" if failed.status == "unavailable" else None
    return None


def marked(backend: str, target: Target) -> ParameterSet:
    """A backend and a target as parameters, with the backend's marker."""
    return pytest.param(backend, target, marks=getattr(pytest.mark, backend), id=f"{backend}-{target.name}")


def as_parameter(subject: Subject, dtype: str, kind: Kind | CallKind) -> ParameterSet:
    """A kind of cases for one text and dtype as parameters, with the backend's marker."""
    mark = getattr(pytest.mark, subject.text.backend)
    return pytest.param(kind, dtype, subject, marks=mark, id=f"{subject.label}-{dtype}-{kind.name}")


def marked_subject(subject: Subject) -> ParameterSet:
    """A text on a target as a parameter, with the backend's marker."""
    return pytest.param(subject, marks=getattr(pytest.mark, subject.text.backend), id=subject.label)


def fail_if_hung(config: pytest.Config, subject: Subject) -> None:
    """Fail a test whose text has hung before: each further time takes as long as patience lasts."""
    if config.stash[_HANGS][subject.label] >= _MOST_HANGS:
        pytest.fail(f"not run, since {subject.label} has hung in {_MOST_HANGS} kinds of cases", pytrace=False)


def finish(item: pytest.Item, outcome: Outcome, subject: Subject, dtype: str, kind: str) -> None:
    """Let the test's report carry the tally, and fail it where a case did."""
    text, target = subject
    names = {"backend": text.backend, "target": target.name, "kernel": text.kernel, "variant": text.variant}
    told = tally(outcome, **names, dtype=dtype, kind=kind)
    item.user_properties.append(as_property(told))
    item.config.stash[_HANGS][subject.label] += outcome.hung
    if outcome.failures:
        lines = [f"{name}: {reason}" for name, reason in outcome.failures]
        pytest.fail("\n".join([*lines, told.command]), pytrace=False)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the reports that carry a tally."""
    if report.when == "call" and from_properties(report.user_properties):
        _COUNTED.append(report)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what held, for each kernel and dtype, and what did not."""
    tallies = [one for report in _COUNTED for one in from_properties(report.user_properties)]
    if file := config.getoption("--conformance-json"):
        file.write_text(json.dumps([asdict(one) for one in tallies], indent=1) + "\n", encoding="utf-8")
    if tallies:
        terminalreporter.section("conformance")
        for line in summary(tallies):
            terminalreporter.write_line(line)


@pytest.fixture(scope="session", autouse=True)
def _keep_compiled_sycl(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let the SYCL runtime keep what it compiles for the session, since every worker compiles anew."""
    os.environ.setdefault("SYCL_CACHE_PERSISTENT", "1")
    os.environ.setdefault("SYCL_CACHE_DIR", str(tmp_path_factory.mktemp("sycl-cache")))


@pytest.fixture(scope="session")
def selection(pytestconfig: pytest.Config) -> Selection:
    """What this run tries."""
    return pytestconfig.stash[SELECTION]


@pytest.fixture(scope="session")
def runner(request: pytest.FixtureRequest, selection: Selection) -> Iterator[Callable[[str, Target], Runner]]:
    """A way to any (backend, target), with one worker each for the whole session."""
    runners = Runners(selection.patience)
    runners.compile(filter(None, map(_subject_of, request.session.items)))
    yield runners.get
    runners.close()


@pytest.fixture(scope="session")
def arenas() -> Iterator[Arenas]:
    """The memory that all cases share."""
    made = Arenas()
    yield made
    made.close()
