"""Every way in which a worker can end: the run goes on, its row says which it was, and nothing is left behind.

All through the command line, on workers of backends that end on purpose (tests/wrong_backends.py).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from commands import CLONE, LONGEST, copy_clone, environment

from py_backends.harness.results import FAILURES

AT_THE_FIRST_LAUNCH = {
    "dies_of_sigsegv": "the worker was ended by SIGSEGV during 'first_launch'",
    "dies_of_sigill": "the worker was ended by SIGILL during 'first_launch'",
    "dies_of_sigkill": "the worker was ended by SIGKILL (out of memory?) during 'first_launch'",
    "aborts": "the worker was ended by SIGABRT during 'first_launch'; it last wrote: free(): invalid pointer",
    "exits": "the worker exited with code 3 during 'first_launch'",
    "exits_as_scripts_do": "the worker exited with code 4 during 'first_launch'",
    "floods_and_dies": "the worker was ended by SIGABRT during 'first_launch'; it last wrote: yyy",
    "forks_and_dies": "the worker was ended by SIGSEGV during 'first_launch'",
    "dies_when_opened": "the worker was ended by SIGBUS during 'open'",
}
IN_A_ROUND = {
    "dies_of_sigsegv_in_a_round": ("crashed", "the worker was ended by SIGSEGV during 'sample'"),
    "raises_in_a_round": ("error", "ArithmeticError: as expected"),
    "exits_in_a_round": ("crashed", "the worker exited with code 3 during 'sample'"),
    "hangs_in_a_round": ("timeout", "no answer to 'sample' within 3 s"),
    "killed_while_stopped_in_a_round": ("crashed", "the worker was ended by SIGKILL (out of memory?) before 'sample'"),
}
DEATHS = {
    **{fault: ("crashed", reason) for fault, reason in AT_THE_FIRST_LAUNCH.items()},
    **IN_A_ROUND,
    "raises": ("error", "ArithmeticError: as expected"),
    "hangs": ("timeout", "no answer to 'first_launch' within 3 s"),
    "runs_out_of_memory": ("skipped", "Unable to allocate 2.00 GiB"),
    "dies_when_imported": ("unavailable", "looking for it failed: the worker was ended by SIGSEGV during 'targets'"),
}
HARMLESS = ["talks", "floods", "leaves_children", "comes_back_twice"]
SOUND = ["numpy", "python"]

WITH_PATIENCE = """
import sys
import py_backends.harness.workers as workers
from py_backends.__main__ import main
workers.ANSWER_WITHIN = float(sys.argv.pop(1))
sys.exit(main())
"""
_MARK = "PY_BACKENDS_TEST_RUN"


@dataclass
class Run:
    """A finished comparison, and what it had in use while it ran.

    memory: its shared memory, as (device, inode) of every file in memory that a process of it held.
    """

    code: int
    errors: str
    seconds: float
    results: Any
    mark: str
    processes: set[int] = field(default_factory=set)
    memory: set[tuple[int, int]] = field(default_factory=set)

    @property
    def rows(self) -> dict[str, Any]:
        return {row["backend"]: row for row in self.results["rows"]}


def compare(clone: Path, *options: str) -> Run:
    """Run `compare` in a clone to its end, watching its processes and their shared memory."""
    path, mark = clone / "results.json", uuid.uuid4().hex
    command = [sys.executable, "-c", WITH_PATIENCE, "3", "compare", *options, "--json", str(path)]
    begin = time.monotonic()
    run = Run(-1, "", 0.0, None, mark)
    with subprocess.Popen(
        command,
        cwd=clone,
        env=environment(**{_MARK: mark}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while process.poll() is None and time.monotonic() - begin < LONGEST:
            look(run)
            time.sleep(0.1)
        process.kill()
        run.errors = process.stderr.read() if process.stderr else ""
    run.code, run.seconds = process.returncode, time.monotonic() - begin
    run.results = json.loads(path.read_text())
    return run


def look(run: Run) -> None:
    """Note which processes the run has, and what shared memory they hold."""
    for process in of_run(run.mark):
        run.processes.add(process.pid)
        run.memory |= set(memory_of(process.pid))


def of_run(mark: str) -> Iterator[psutil.Process]:
    """Every process that was started by a run, whoever is its parent by now."""
    for process in psutil.process_iter():
        try:
            if process.environ().get(_MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                yield process
        except psutil.Error:  # it has ended, or is somebody else's
            continue


def memory_of(pid: int) -> Iterator[tuple[int, int]]:
    """The harness's shared memory that a process holds open or has mapped."""
    for folder in ("fd", "map_files"):
        try:
            for link in Path(f"/proc/{pid}/{folder}").iterdir():
                if str(link.readlink()).startswith("/memfd:py-backends"):
                    found = link.stat()
                    yield found.st_dev, found.st_ino
        except OSError:  # it has ended, or is somebody else's
            continue


def assert_nothing_is_left(run: Run) -> None:
    """No process of a run, and of its memory nothing in any process of the system."""
    deadline = time.monotonic() + 10  # who gets SIGKILL from the system ends soon, not at once
    while (alive := list(of_run(run.mark))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [(process.pid, process.cmdline()) for process in alive]
    assert run.processes
    assert run.memory, "it was never seen with any, which shows nothing"
    assert not [pid for pid in psutil.pids() if run.memory & set(memory_of(pid))]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the clone with a backend for every ending."""
    copy = copy_clone(tmp_path_factory.mktemp("clone"))
    for fault in (*DEATHS, *HARMLESS):
        shutil.copy(CLONE / "tests" / "wrong_backends.py", copy / "py_backends" / f"{fault}.py")
        lecture = copy / "kernels" / "vecadd" / "lecture"
        shutil.copy(lecture / "numpy.py", lecture / f"{fault}.py")
    return copy


OPTIONS = ("--kernel", "vecadd", "--shape", "vecadd=509", "--budget", "12", "--backend")


@pytest.fixture(scope="module")
def deadly(clone: Path) -> Run:
    return compare(clone, *OPTIONS, ",".join([*SOUND, *DEATHS]))


@pytest.fixture(scope="module")
def harmless(clone: Path) -> Run:
    return compare(clone, *OPTIONS, ",".join([*SOUND, *HARMLESS]))


@pytest.mark.parametrize("fault", DEATHS)
def test_the_row_says_how_its_worker_ended(deadly: Run, fault: str) -> None:
    row = deadly.rows[fault]
    status, words = DEATHS[fault]
    assert row["status"] == status
    assert row["reason"].startswith(words)
    assert len(row["reason"]) < 1000
    assert (row["check"], row["rate"], row["versus"]) == (None, None, None)
    assert status in FAILURES or fault in {"runs_out_of_memory", "dies_when_imported"}


def test_the_run_goes_on_and_says_that_rows_failed(deadly: Run) -> None:
    assert (deadly.code, deadly.errors) == (1, "")
    assert deadly.seconds < LONGEST


def test_endings_in_a_round_were_in_a_round(deadly: Run) -> None:
    """The others went on after them."""
    assert deadly.rows["numpy"]["seconds"]["kernel"]["samples"] > 10


@pytest.mark.parametrize("run", ["deadly", "harmless"])
@pytest.mark.parametrize("backend", SOUND)
def test_other_rows_stand(run: str, backend: str, request: pytest.FixtureRequest) -> None:
    row = request.getfixturevalue(run).rows[backend]
    assert (row["status"], row["check"]["passed"]) == ("ok", True)
    assert row["seconds"]["kernel"]["median"] > 0
    assert row["seconds"]["end_to_end"]["median"] > 0
    assert row["rate"]["gbytes_per_second"] > 0
    assert row["finished"]


@pytest.mark.parametrize("backend", HARMLESS)
def test_who_prints_and_forks_may_go_on(harmless: Run, backend: str) -> None:
    row = harmless.rows[backend]
    assert (row["status"], row["reason"]) == ("ok", None)
    assert harmless.code == 0


@pytest.mark.parametrize("run", ["deadly", "harmless"])
def test_no_process_and_no_memory_is_left(run: str, request: pytest.FixtureRequest) -> None:
    assert_nothing_is_left(request.getfixturevalue(run))
