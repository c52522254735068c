"""Every way in which a worker can end: the run goes on, its row says which it was, and nothing is left behind.

All through the command line, on workers of backends that end on purpose (tests/faults/backend.py).
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from commands import LONGEST, copy_clone
from faults import scratch
from faults.seen import ENDINGS, HARMLESS
from started import Ended, Started

from py_backends.results.report import FAILURES

PATHS = "py_backends/harness", "py_backends/workers", "tests/faults"
pytestmark = [pytest.mark.slow, pytest.mark.stamped(*PATHS)]

PATIENCE = "5"
"""Seconds in which a sound worker answers, whoever else is at work."""
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
    scratch.backends(copy, [*ENDINGS, *HARMLESS])
    return copy


OPTIONS = ("--kernel", "vecadd", "--shape", "vecadd=509")


@pytest.fixture(scope="module")
def deadly(clone: Path) -> Ended:
    # Two that hang take 5 seconds each, one before the rounds and one in them. Time is left for rounds after it.
    return compare(clone, *OPTIONS, "--budget", "16", "--backend", ",".join([*SOUND, *ENDINGS]))


@pytest.fixture(scope="module")
def harmless(clone: Path) -> Ended:
    return compare(clone, *OPTIONS, "--budget", "5", "--backend", ",".join([*SOUND, *HARMLESS]))


@pytest.mark.parametrize("fault", ENDINGS)
def test_the_row_says_how_its_worker_ended(deadly: Ended, fault: str) -> None:
    row = deadly.rows[fault]
    status, words = ENDINGS[fault]
    assert row["status"] == status
    assert row["reason"].startswith(words)
    assert len(row["reason"]) < 1000
    assert (row["check"], row["rate"], row["versus"]) == (None, None, None)
    assert status in FAILURES or fault in {"runs_out_of_memory", "dies_when_imported"}


def test_the_run_goes_on_and_says_that_rows_failed(deadly: Ended) -> None:
    assert (deadly.code, deadly.errors) == (1, "")
    assert deadly.seconds < LONGEST


def test_endings_in_a_round_were_in_a_round(deadly: Ended) -> None:
    """The second. The others went on to a third, which each run has, whoever else is at work."""
    assert deadly.rows["numpy"]["seconds"]["kernel"]["samples"] > 2


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
