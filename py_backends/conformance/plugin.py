"""The pytest plug-in: options, a marker for each backend, skips that say what is missing, and the summary.

The project's own tests also load it, for its markers, skips and workers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

import msgspec
import numpy as np
import pytest

from py_backends import folders, registry
from py_backends.conformance.at_hand import has_device, why_missing
from py_backends.conformance.running import Arenas, Runners
from py_backends.conformance.selection import Extent, Selection, Subject
from py_backends.conformance.tally import REFERENCE, Tally, summary
from py_backends.contract import Target
from py_backends.errors import BackendUnavailable, WrongRequest
from py_backends.kernel_text import KernelText
from py_backends.limits import seconds
from py_backends.system.files import check_writable, write_whole, written
from py_backends.workers.process import WorkerFailed
from py_backends.workers.runner import Runner

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet

SELECTION = pytest.StashKey[Selection]()
_LISTS = {
    "backend": "backends that the suite tries, and that must be there",
    "target": "targets that it tries",
    "kernel": "kernels that it tries",
    "variant": "variants of their sources",
    "kind": "kinds of cases",
}
_SUITE = str(Path(__file__).parent)
_HANGS = pytest.StashKey[Counter[str]]()
_BROKEN = pytest.StashKey[set[str]]()
"""The kernels whose problem has failed. No other case of theirs is run, since each would fail in the same way."""
_MOST_HANGS = 2
"""In how many kinds a source may hang before it is no longer run."""
_TALLIES: list[Tally] = []
_PROPERTY = "conformance"
"""The name under which a test's report carries its tally. The test may have run in another process."""
_Given = TypeVar("_Given")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The suite's options, and one for all tests that need a backend."""
    group = parser.getgroup("py-backends", "conformance of backends")
    for name, what in _LISTS.items():
        group.addoption(
            f"--{name}",
            action="extend",
            default=[],
            type=_names,
            metavar="NAMES",
            help=f"{what}: a list separated by commas, repeatable; all where there is none",
        )
    group.addoption(
        "--sources", type=Path, metavar="FOLDER", action="append", default=[], help="further sources of the kernel"
    )
    group.addoption(
        "--case", metavar="NAME", help="the case of that name; in a kind without it, all whose names contain it"
    )
    for extent in Extent:
        group.addoption(
            f"--{extent.name.lower()}", dest="extent", action="store_const", const=extent, help=extent.value
        )
    group.addoption(
        "--patience",
        type=seconds,
        default=60.0,
        metavar="SECONDS",
        help="a case that has not ended after this time counts as hung (default: 60)",
    )
    group.addoption(
        "--conformance-json",
        type=Path,
        metavar="FILE",
        help="write what passed and what failed, an object for each kind",
    )
    group.addoption(
        "--require-backend",
        action="append",
        default=[],
        metavar="NAME",
        help="fail, instead of skipping, where this backend is not there (repeatable)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register a marker for every backend. Refuse unknown names, and a file that cannot be written at the end."""
    for name in registry.backend_names():
        config.addinivalue_line("markers", f"{name}: needs the backend {name}")
    for name in config.getoption("--require-backend"):
        _or_usage_error("--require-backend: ", partial(registry.known_backend, name))
    if file := config.getoption("--conformance-json"):
        _or_usage_error("--conformance-json: ", partial(check_writable, file))
    kernels = config.getoption("--kernel")
    _or_usage_error("", lambda: kernels.__setitem__(slice(None), map(registry.kernel_named, kernels)))
    for folder in config.getoption("--sources"):
        if len(kernels) != 1:
            raise pytest.UsageError("--sources has sources of one kernel: name it by --kernel")
        _or_usage_error("", partial(registry.add_sources, folder, *kernels))
    selection = Selection(
        **{f"{name}s": tuple(config.getoption(f"--{name}")) for name in _LISTS},
        case=config.getoption("--case"),
        extent=config.getoption("extent") or Extent.THOROUGH,
        patience=config.getoption("--patience"),
    )
    _or_usage_error("", selection.check)
    config.stash[SELECTION] = selection
    config.stash[_HANGS] = Counter()
    config.stash[_BROKEN] = set()
    _TALLIES.clear()


def _names(given: str) -> list[str]:
    return [given] if folders.is_one(given) else [name for each in given.split(",") if (name := each.strip())]


def _or_usage_error(prefix: str, check: Callable[[], object]) -> None:
    try:
        check()
    except (WrongRequest, BackendUnavailable) as wrong:
        raise pytest.UsageError(f"{prefix}{wrong}") from None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests of the suite for which the options chose nothing. pytest would make skips of them.

    If they chose nothing at all, or nothing of a named backend or target, that is wrong usage, since it would look like
    a success.
    """
    unused = {item for item in items if _SUITE in str(item.path) and item.name.endswith("[NOTSET]")}
    items[:] = [item for item in items if item not in unused]
    just_in_time_last(items)
    selection = config.stash[SELECTION]
    asked = {"--kind": ", ".join(selection.kinds), "--case": selection.case}
    given = " and ".join(f"{option} {value}" for option, value in asked.items() if value)
    if unused and given:
        tried = {name for item in items if (subject := _given(item, "subject", Subject)) for name in _places(subject)}
        there = {name for subject in selection.subjects() for name in _places(subject)}
        for name in ("", *selection.backends, *selection.targets):
            if name in there - tried:
                raise pytest.UsageError(f"there is no case of {given} among the other choices{name and f' for {name}'}")


def _places(subject: Subject) -> tuple[str, ...]:
    """What a source is tried for: everything (""), its backend, its target."""
    return "", subject.text.backend, subject.target.name


def just_in_time_last(items: list[pytest.Item]) -> None:
    """Put tests of sources that compile at run time last, so that they compile while the others run."""
    subjects = {at: subject for at, item in enumerate(items) if (subject := _given(item, "subject", Subject))}
    ordered = sorted(subjects, key=lambda at: subjects[at].target.just_in_time)
    for at, item in zip(subjects, [items[at] for at in ordered], strict=True):
        items[at] = item


def _given(item: pytest.Item, name: str, kind: type[_Given]) -> _Given | None:
    """The argument of a test of that name. None if it is of another kind, as in tests outside the suite."""
    call = getattr(item, "callspec", None)
    value = call.params.get(name) if call else None
    return value if isinstance(value, kind) else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose backend or target is not there; fail it where that is required."""
    for name in registry.backend_names():
        if item.get_closest_marker(name):
            reason = why_missing(name, _given(item, "target", Target))
            if reason:
                skip_or_fail(item.config, name, reason)


def skip_or_fail(config: pytest.Config, backend: str, reason: str) -> NoReturn:
    """Skip a test for what is missing; fail it where that is required.

    If a device is there, other targets may be missing: a CPU need not have every instruction set. What `--backend` or
    `--target` chose must be there.
    """
    selection = config.stash[SELECTION]
    chosen = bool(selection.targets) or (backend in selection.backends and why_missing(backend))
    if chosen or (backend in config.getoption("--require-backend") and not has_device(backend)):
        pytest.fail(f"{backend} is required but not there: {reason}", pytrace=False)
    pytest.skip(f"{backend}: {reason}")


def begin(
    config: pytest.Config, subject: Subject, runners: Runners, wanted: Sequence[str], kind: str
) -> tuple[Runner, list[Tally]]:
    """The runner of a source, and a tally for each of the wanted dtypes in which its target can compute it.

    Many GPUs have no float64. Without such a dtype the test is skipped. It fails if the suite is to try the target, and
    the target can compute in no dtype although it is said to be available. It also fails if the source has often hung
    before, since each hang takes all of `--patience`. It is skipped if the kernel's problem has failed before.
    """
    if subject.text.kernel in config.stash[_BROKEN]:
        pytest.skip(f"not run, since the problem of {subject.text.kernel} fails")
    if config.stash[_HANGS][subject.label] >= _MOST_HANGS:
        pytest.fail(f"not run, since {subject.label} has hung in {_MOST_HANGS} kinds of cases", pytrace=False)
    text, target, runner, selection = subject.text, subject.target, runners.get(subject), config.stash[SELECTION]
    why = {dtype: _why_unable(runner, text, dtype) for dtype in wanted}
    if able := [dtype for dtype in wanted if why[dtype] is None]:
        return runner, [Tally(text.backend, target.name, text.kernel, text.variant, dtype, kind) for dtype in able]
    chosen = text.backend in selection.backends or target.name in selection.targets
    if chosen and all(_why_unable(runner, text, dtype) for dtype in subject.dtypes):
        pytest.fail(f"{subject.label} is said to be available, and can compute in no dtype: {why}", pytrace=False)
    pytest.skip(f"{text.backend}: {', '.join(filter(None, why.values()))}")


def _why_unable(runner: Runner, text: KernelText, dtype: str) -> str | None:
    """Why a device cannot compute in a dtype. None where it can, and where preparing fails for another reason."""
    try:
        runner.compile(text, np.dtype(dtype))
    except WorkerFailed as failed:
        fix = f" (to change that: {failed.fix})" if failed.fix else ""
        return f"{failed.reason}{fix}" if failed.status == "unavailable" else None
    return None


def marked(backend: str, *values: object, name: str) -> ParameterSet:
    """Parameters of a test under a name, with the marker of a backend."""
    return pytest.param(*values, marks=getattr(pytest.mark, backend), id=name)


def finish(item: pytest.Item, subject: Subject, tally: Tally) -> None:
    """Let the test's report carry the tally, and fail it where a case did."""
    item.user_properties.append((_PROPERTY, asdict(tally)))
    item.config.stash[_HANGS][subject.label] += tally.hung
    if any(name == REFERENCE for name, _ in tally.failures):
        item.config.stash[_BROKEN].add(subject.text.kernel)
    if tally.failures:
        lines = [f"{name}: {reason}" for name, reason in tally.failures]
        pytest.fail("\n".join([*lines, tally.command]), pytrace=False)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the tallies that reports carry."""
    if report.when == "call":
        told = [value for name, value in report.user_properties if name == _PROPERTY]
        _TALLIES.extend(msgspec.convert(told, list[Tally]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what held, for each kernel and dtype, and what did not."""
    if _TALLIES:
        terminalreporter.section("conformance")
        for line in summary(_TALLIES):
            terminalreporter.write_line(line)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """Write the file after the summary, which nothing that fails here may take away. Without it the run fails."""
    yield
    file, here = session.config.getoption("--conformance-json"), session.config.pluginmanager.hasplugin("terminal")
    if file and here and not written(file, _write):  # here: where reports come together, and not in xdist's workers
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


def _write(file: Path) -> None:
    write_whole(file, json.dumps([asdict(one) for one in _TALLIES], indent=1) + "\n")


@pytest.fixture(scope="session")
def selection(pytestconfig: pytest.Config) -> Selection:
    """What this run tries."""
    return pytestconfig.stash[SELECTION]


@pytest.fixture(scope="session")
def runners(request: pytest.FixtureRequest, selection: Selection) -> Iterator[Runners]:
    """The runners of each (backend, target), with one worker each for the whole session."""
    made = Runners(selection.patience)
    if not hasattr(request.config, "workerinput"):  # of several processes, each would compile what all of them try
        made.compile(filter(None, (_given(item, "subject", Subject) for item in request.session.items)))
    yield made
    made.close()


@pytest.fixture(scope="session")
def arenas() -> Iterator[Arenas]:
    """The memory that all cases share."""
    made = Arenas()
    yield made
    made.close()
