"""Every way in which a worker can end: the run goes on, its row says which it was, and nothing is left behind.

All through the command line, on workers of backends that end on purpose (tests/wrong_backends.py).
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from commands import CLONE, LONGEST, copy_clone
from started import Ended, Started

from py_backends.results.report import FAILURES

pytestmark = pytest.mark.slow

PATIENCE = "8"
"""Seconds in which a sound worker answers, whoever else is at work."""
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
    "hangs_in_a_round": ("timeout", f"no answer to 'sample' within {PATIENCE} s"),
    "killed_while_stopped_in_a_round": ("crashed", "the worker was ended by SIGKILL (out of memory?) before 'sample'"),
}
DEATHS = {
    **{fault: ("crashed", reason) for fault, reason in AT_THE_FIRST_LAUNCH.items()},
    **IN_A_ROUND,
    "raises": ("error", "ArithmeticError: as expected"),
    "hangs": ("timeout", f"no answer to 'first_launch' within {PATIENCE} s"),
    "runs_out_of_memory": ("skipped", "Unable to allocate 2.00 GiB"),
    "dies_when_imported": ("unavailable", "probing it failed: the worker was ended by SIGSEGV during 'targets'"),
}
HARMLESS = ["talks", "floods", "leaves_children", "comes_back_twice"]
SOUND = ["numpy", "python"]

WITH_PATIENCE = """
import sys
import py_backends.workers.process as workers
from py_backends.__main__ import main
workers.ANSWER_WITHIN = float(sys.argv.pop(1))
sys.exit(main())
"""


def compare(clone: Path, *options: str) -> Ended:
    """Run `compare` in a clone to its end, watching its processes and their shared memory."""
    path = clone / "results.json"
    run = Started([sys.executable, "-c", WITH_PATIENCE, PATIENCE, "compare", *options, "--json", str(path)], cwd=clone)
    return run.end(path)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the clone with a backend for every ending."""
    copy = copy_clone(tmp_path_factory.mktemp("clone"))
    for fault in (*DEATHS, *HARMLESS):
        shutil.copy(CLONE / "tests" / "wrong_backends.py", copy / "py_backends" / "backend" / f"{fault}.py")
        lecture = copy / "kernels" / "vecadd" / "lecture"
        shutil.copy(lecture / "numpy.py", lecture / f"{fault}.py")
    return copy


OPTIONS = ("--kernel", "vecadd", "--shape", "vecadd=509")


@pytest.fixture(scope="module")
def deadly(clone: Path) -> Ended:
    # Two that hang take 8 seconds each, one before the rounds and one in them. Time is left for rounds after it.
    return compare(clone, *OPTIONS, "--budget", "40", "--backend", ",".join([*SOUND, *DEATHS]))


@pytest.fixture(scope="module")
def harmless(clone: Path) -> Ended:
    return compare(clone, *OPTIONS, "--budget", "5", "--backend", ",".join([*SOUND, *HARMLESS]))


@pytest.mark.parametrize("fault", DEATHS)
def test_the_row_says_how_its_worker_ended(deadly: Ended, fault: str) -> None:
    row = deadly.rows[fault]
    status, words = DEATHS[fault]
    assert row["status"] == status
    assert row["reason"].startswith(words)
    assert len(row["reason"]) < 1000
    assert (row["check"], row["rate"], row["versus"]) == (None, None, None)
    assert status in FAILURES or fault in {"runs_out_of_memory", "dies_when_imported"}


def test_the_run_goes_on_and_says_that_rows_failed(deadly: Ended) -> None:
    assert (deadly.code, deadly.errors) == (1, "")
    assert deadly.seconds < LONGEST


def test_endings_in_a_round_were_in_a_round(deadly: Ended) -> None:
    """The fourth. The others went on after it."""
    assert deadly.rows["numpy"]["seconds"]["kernel"]["samples"] > 4


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
def test_who_prints_and_forks_may_go_on(harmless: Ended, backend: str) -> None:
    row = harmless.rows[backend]
    assert (row["status"], row["reason"]) == ("ok", None)
    assert harmless.code == 0


@pytest.mark.parametrize("run", ["deadly", "harmless"])
def test_no_process_and_no_memory_is_left(run: str, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(run).assert_nothing_is_left()
