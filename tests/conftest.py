"""What the project's own tests share. Markers by backend, skips and workers are those of `py_backends.conformance`."""

from __future__ import annotations

import importlib.util
import io
import itertools
import json
import re
import shutil
import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import hypothesis
import in_turn
import pytest
from commands import CLONE, Finished, run_command
from rich.console import Console
from rich.table import Table
from stamps import STAMPED, StampsOfTests

from py_backends import folders, registry
from py_backends.commands.hello import programs
from py_backends.commands.hello import run as hello
from py_backends.commands.hello.run import Outcome
from py_backends.conformance.at_hand import at_hand, found, has_device, targets_of
from py_backends.conformance.plugin import skip_or_fail
from py_backends.conformance.selection import Extent
from py_backends.functions import call
from py_backends.install import pip_install

if TYPE_CHECKING:
    from page_commands import PageRuns, Ran

__all__ = [
    "after_a_change",
    "at_hand",
    "chromium",
    "found",
    "has_device",
    "marked_backends",
    "nightly",
    "skip_or_fail",
    "targets_of",
]

# The same examples in every run, so that what fails was changed; and no test looks at the clock.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.load_profile("repeatable")

AnyTest = TypeVar("AnyTest", bound=Callable[..., Any])


LEFT_OUT = {
    "slow": ({None}, "takes long, and says little of this machine"),
    "nightly": ({None, Extent.QUICK}, "takes very long, and rarely fails alone"),
    "documents": ({None, Extent.QUICK}, "holds documents to what there is; make lint runs it"),
    "sample": ({Extent.QUICK, Extent.THOROUGH}, "tries a part of what the conformance suite tries"),
}
"""The markers of tests that are left out unless -m names them: with which extents, and why. `make test` has none."""


def nightly(*values: object) -> Any:
    """Parameters with which a test is one of those."""
    return pytest.param(*values, marks=pytest.mark.nightly)


ALONE = "stamped"
"""The marker of tests that take long and depend on the clone alone: `make test` runs them where something changed. With
paths, they depend on these and on their own file; such a slow test is left out until one of these has changed."""


def after_a_change(*paths: str) -> Callable[[AnyTest], AnyTest]:
    """Marks slow tests that `make test` runs after a change of these files or folders."""
    return lambda test: pytest.mark.slow(pytest.mark.stamped(*paths)(test))


BROWSER = "browser"
"""The marker of tests that open a page."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-browser", action="store_true", help="fail, instead of skipping, where there is no browser"
    )
    parser.addoption(
        "--changed", metavar="PATH", help="slow tests too that make test runs after a change of this file or folder"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Outcomes())
    if config.pluginmanager.hasplugin("xdist"):
        config.pluginmanager.import_plugin("in_two")
    # What a shell script starts in the background ignores SIGINT, and what nohup starts SIGHUP. What tests interrupt
    # would have inherited it.
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)
    config.addinivalue_line("markers", f"{BROWSER}: opens a page in a headless Chromium")
    config.addinivalue_line(
        "markers", f"{ALONE}(*paths): depends on the clone, or on these of it, alone; make test runs it after a change"
    )
    for name in in_turn.FILES:
        config.addinivalue_line("markers", f"{name}: lies in a file whose slow tests .ci/run has in one run of eight")
    for name, (extents, why) in LEFT_OUT.items():
        given = sorted(f"--{extent.name.lower()}" if extent else "no extent" for extent in extents)
        config.addinivalue_line("markers", f"{name}: {why}; left out with {' and '.join(given)}")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test by its file's turn."""
    item.add_marker(in_turn.marker(item.nodeid.partition("::")[0]))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that are not of the extent of this run."""
    extent = config.getoption("extent")
    named = set(re.findall(r"\w+", config.getoption("markexpr")))
    left_out = {name for name, (extents, _) in LEFT_OUT.items() if extent in extents and name not in named}
    stamps = StampsOfTests() if is_of_make_test(config) else None
    chosen, others = [], []
    for item in items:
        marks = left_out & {mark.name for mark in item.iter_markers()}
        if marks == {"slow"}:
            due = is_due_after_a_change(item, stamps)
        else:
            due = not marks and not (stamps and item.get_closest_marker(ALONE) and stamps.passed(item.nodeid))
        (chosen if due else others).append(item)
    if hasattr(config, "workerinput"):  # one of several processes: see in_two
        of_file = Counter(item.path for item in chosen)
        chosen.sort(key=lambda item: of_file[item.path])
    config.hook.pytest_deselected(items=others)
    items[:] = chosen


def is_of_make_test(config: pytest.Config) -> bool:
    """Whether all tests were asked for, in several processes: then those that a stamp says passed are left out."""
    named = config.getoption("extent"), config.getoption("markexpr"), config.getoption("keyword")
    return hasattr(config, "workerinput") and not any(named)


def is_due_after_a_change(item: pytest.Item, stamps: StampsOfTests | None) -> bool:
    """Whether a slow test is to run since a file that it depends on was changed. A first run only looks at them."""
    paths = paths_of(item)
    if not paths:
        return False
    if changed := item.config.getoption("changed"):
        return any(path.is_relative_to(CLONE / changed) or (CLONE / changed).is_relative_to(path) for path in paths)
    if stamps and not stamps.known(item.nodeid):
        stamps.keep(item.nodeid, paths)
    return bool(stamps) and not stamps.passed(item.nodeid, paths)


def paths_of(item: pytest.Item) -> list[Path]:
    """The files and folders that a test depends on; none stands for all of the clone."""
    marker = item.get_closest_marker(ALONE)
    return [*(CLONE / path for path in marker.args), item.path] if marker and marker.args else []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Keep that a test passed whose stamp counts."""
    yield
    if item.get_closest_marker(ALONE):
        StampsOfTests().keep(item.nodeid, paths_of(item))


@pytest.fixture(scope="session")
def thorough(pytestconfig: pytest.Config) -> bool:
    """Whether the run has time for everything."""
    return pytestconfig.getoption("extent") is Extent.THOROUGH


class Outcomes:
    """What became of the tests of each backend, for the table at the end. `NO_BACKEND` stands for those of none."""

    NO_BACKEND = "(none)"
    COLUMNS = "passed", "failed", "skipped", "rules by stamp", "sources tried", "by stamp", "not tried"

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        self.reasons: dict[str, Counter[str]] = defaultdict(Counter)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test, or the part of it that failed or was skipped, and what it tried."""
        if report.when != "call" and report.passed:
            return
        for name in [name for name in registry.backend_names() if name in report.keywords] or [self.NO_BACKEND]:
            self.counts[name][report.outcome] += 1
            for told, counts in report.user_properties if report.when == "call" else ():
                self.counts[name].update(counts if told == STAMPED else {})
            if report.skipped and isinstance(report.longrepr, tuple):
                self.reasons[name][report.longrepr[2].removeprefix("Skipped: ").removeprefix(f"{name}: ")] += 1

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a line for each backend, where any was tried, and what is missing."""
        names = [name for name in (*registry.backend_names(), self.NO_BACKEND) if name in self.counts]
        if not set(names) - {self.NO_BACKEND}:
            return
        table = Table("backend", *self.COLUMNS, box=None, pad_edge=False)
        for name in names:
            table.add_row(name, *(str(self.counts[name][column]) for column in self.COLUMNS))
        table.add_row("all", *(str(sum(self.counts[name][column] for name in names)) for column in self.COLUMNS))
        with io.StringIO() as lines:
            Console(file=lines, width=max(100, terminalreporter._tw.fullwidth)).print(table)
            terminalreporter.section("what works on this machine, by backend")
            terminalreporter.write(lines.getvalue())
        for name in names:
            for reason, count in self.reasons[name].most_common():
                terminalreporter.write_line(f"{count} of {name} skipped: {reason}")


def marked_backends() -> list[object]:
    """Every backend as a parameter that carries its marker."""
    return [pytest.param(name, marks=getattr(pytest.mark, name)) for name in registry.backend_names()]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, or fail where it is required, a test that opens a page where there is no browser."""
    if item.get_closest_marker(BROWSER) and (reason := _why_no_browser()):
        if item.config.getoption("--require-browser"):
            pytest.fail(f"a browser is required but not there: {reason}", pytrace=False)
        pytest.skip(f"browser: {reason}")


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The arrays of the last call as its device got them: inputs, then outputs."""
    arrays: list[Any] = []
    run = call._run

    def spying(device: Any, launch: Any, given: Any, outputs: int, sizes: Any) -> None:
        arrays[:] = given
        run(device, launch, given, outputs, sizes)

    monkeypatch.setattr(call, "_run", spying)
    return arrays


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test adds is known in it alone."""
    monkeypatch.setenv(folders.VARIABLE, "")
    yield
    kernels = {folder.kernel for folder in folders._known.values()}
    folders._known.clear()
    for forget, kernel in itertools.product(folders.FORGET, kernels):
        forget(kernel)


def chromium() -> str | None:
    """The path of a Chromium that the system has."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


def _why_no_browser() -> str | None:
    if chromium() is None:
        return "no Chromium on this machine (to change that: apt-get install chromium)"
    if importlib.util.find_spec("playwright") is None:
        return f"playwright is not installed (to change that: {pip_install('test')})"
    return None


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
    """One comparison for all tests that look at what comes out of it.

    One usual number format, and one whose results have another. Nothing is compiled for it.
    """
    folder = tmp_path_factory.mktemp("comparison")
    files = folder / "results.json", folder / "results.csv", folder / "results.md"
    too_large = f"matmul={2**20}x{2**20}x0"  # nothing to compute, and terabytes of zeros to write
    run = run_command(
        *("compare", "--backend", "cublas,numba_cuda,numpy,openmp,python", "--dtype", "float32,int8"),
        *("--variant", "lecture,tuned"),
        *("--shape", "matmul=9x10x11", "--shape", too_large, "--shape", "vecadd=521", "--budget", "4", "--seed", "3"),
        *("--json", files[0], "--csv", files[1], "--markdown", files[2]),
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return Comparison(run, *files)


@pytest.fixture(scope="session")
def outcomes() -> dict[str, Outcome]:
    """All first programs are run once, some at a time: most of it is waiting for compilers."""
    found = [program for model in programs.models() for program in programs.programs(model)]
    with ThreadPoolExecutor(3) as pool:
        return dict(zip([program.path.name for program in found], pool.map(hello.run, found), strict=True))


@pytest.fixture(scope="session")
def page_runs(tmp_path_factory: pytest.TempPathFactory) -> PageRuns:
    """Runs a command that a page prints, by how it begins, and those that read what it writes: once for all tests."""
    from page_commands import quick_sequences, run_all

    done: dict[str, Ran] = {}

    def ran(beginning: str) -> Ran:
        sequence = next(each for each in quick_sequences() if each[0].startswith(beginning))
        if sequence[0] not in done:
            done[sequence[0]] = run_all(sequence, tmp_path_factory.mktemp("page"))
        return done[sequence[0]]

    return ran
