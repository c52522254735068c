"""Signals that end a comparison: what is finished is written, and nothing is left behind, not even by SIGKILL."""

from __future__ import annotations

import os
import pty
import random
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import psutil
import pytest
from commands import copy_clone
from conftest import nightly
from faults import scratch
from started import LAST_STAGE, OPTIONS, TELLING_ITS_STAGES, Ended, Started, started_until

import py_backends as pb
from py_backends.contract import Target
from py_backends.harness.compare import Comparison, Progress
from py_backends.harness.pool import Pool
from py_backends.harness.running_row import RunningRow
from py_backends.results.spec import Spec
from py_backends.system.signals import SIGNALS, hold_off, interruptible, let_go
from py_backends.workers.process import WorkerFailed

STAGES = ["looking for backends", "preparing vecadd", "checking vecadd", "round 3", LAST_STAGE]


def send_until_it_ends(run: Started, number: signal.Signals) -> None:
    """The same signal again and again, as impatient people do."""
    while run.process.poll() is None:
        run.process.send_signal(number)
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "stage"), [*((signal.SIGTERM, stage) for stage in STAGES), (signal.SIGHUP, "round 3")]
)
def test_signals_write_what_is_finished(number: signal.Signals, stage: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    run = started_until(stage, path)
    run.process.send_signal(number)
    ended = run.end(path)
    assert ended.code == 130
    assert "Interrupted" in ended.output
    assert_interrupted(ended, stage)


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["preparing vecadd", "round 3"])
@pytest.mark.parametrize("number", [signal.SIGINT, nightly(signal.SIGTERM)])
def test_further_signals_lose_nothing(number: signal.Signals, stage: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    run = started_until(stage, path)
    sender = threading.Thread(target=send_until_it_ends, args=(run, number))
    sender.start()
    ended = run.end(path)
    sender.join()
    assert ended.code == 130
    assert "Traceback" not in ended.errors
    assert list(tmp_path.iterdir()) == [path], "nor is a temporary file left"
    assert_interrupted(ended, stage)


def assert_interrupted(ended: Ended, stage: str) -> None:
    assert ended.results["interrupted"] is True
    for row in ended.results["rows"]:
        assert row["finished"] is False or stage == LAST_STAGE, "which may have come to its end"
        if stage in {"round 3", LAST_STAGE}:
            assert (row["status"], row["reason"], row["check"]["passed"]) == ("ok", None, True)
            assert row["seconds"]["kernel"]["samples"] >= 1
            assert ("interrupted" in (row["note"] or "")) is not row["finished"]
    ended.assert_nothing_is_left(had_memory=stage in {"round 3", LAST_STAGE})


@pytest.mark.slow
def test_a_row_that_had_failed_says_how() -> None:
    """And not that it was interrupted, as those do that could have gone on."""
    spec = Spec("vecadd", "avx", "sse", "lecture", "float32", (9,))
    row = RunningRow(spec, Target("sse"), None, sizes=(9,), status="ok", failed=WorkerFailed("crashed", "it died"))
    comparison = Comparison(cast(Pool, None), 1, 1.0, random.Random(1), cast(Progress, None))
    comparison._rows = comparison._timed = [row]
    comparison.interrupt()
    assert (row.status, row.reason, row.notes, row.finished) == ("crashed", "it died", [], True)


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_who_is_killed_leaves_nothing(stage: str, tmp_path: Path) -> None:
    run = started_until(stage, tmp_path / "results.json")
    if stage in {"round 3", LAST_STAGE}:
        wait_until_one_is_stopped(run)
    run.process.kill()
    ended = run.end()
    assert ended.code == -signal.SIGKILL
    ended.assert_nothing_is_left(had_memory=stage in {"round 3", LAST_STAGE})


def wait_until_one_is_stopped(run: Started) -> None:
    """Those who wait for their turn are stopped: they have to go too."""
    while run.process.poll() is None:
        if psutil.STATUS_STOPPED in [worker.status() for worker in run.workers()]:
            return
    raise AssertionError("it ended, and no worker was ever stopped")


@pytest.fixture(scope="module")
def clone_of_those_that_hang(tmp_path_factory: pytest.TempPathFactory) -> Path:
    clone = copy_clone(tmp_path_factory.mktemp("clone"))
    scratch.backends(clone, ["hangs", "hangs_when_probed"])
    return clone


@pytest.mark.stamped
@pytest.mark.parametrize(
    ("stage", "backend"),
    [
        ("looking for backends", "hangs_when_probed"),
        pytest.param("preparing vecadd", "hangs", marks=pytest.mark.slow),
    ],
)
def test_nobody_waits_for_a_driver_that_hangs(
    stage: str, backend: str, clone_of_those_that_hang: Path, tmp_path: Path
) -> None:
    path = tmp_path / "results.json"
    run = started_until(stage, path, backend, clone_of_those_that_hang)
    time.sleep(2)  # until it hangs
    run.process.terminate()
    run.process.communicate(timeout=60)  # half of what a worker is given to answer
    ended = run.end(path)
    assert ended.code == 130
    assert [row["status"] for row in ended.results["rows"]] == ["skipped"] * (backend == "hangs")
    ended.assert_nothing_is_left(had_memory=False)


@pytest.mark.slow
def test_a_closed_terminal_writes_what_is_finished(tmp_path: Path) -> None:
    """Where nothing can be shown any more."""
    path = tmp_path / "results.json"
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "py_backends", *OPTIONS, "--backend", "numpy,python", "--json", str(path)]
    on_it = "import os, sys; os.login_tty(int(sys.argv[1])); os.execv(sys.argv[2], sys.argv[2:])"
    run = Started([sys.executable, "-c", on_it, str(theirs), *command], pass_fds=[theirs], start_new_session=True)
    os.close(theirs)
    shown = b""
    while not re.search(rb"round ([3-9]|\d\d)", shown):  # not every round is shown
        shown += os.read(ours, 65536)
    os.close(ours)
    ended = run.end(path)
    assert ended.code in {1, 130}
    assert_interrupted(ended, "round 3")


@pytest.mark.slow
def test_what_was_ignored_stays_ignored(tmp_path: Path) -> None:
    """As under nohup."""
    path = tmp_path / "results.json"
    line = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", sys.executable, "-c", TELLING_ITS_STAGES, *OPTIONS]
    run = Started([*line, "--budget", "1", "--backend", "numpy", "--json", str(path)])
    assert run.process.stderr
    for text in run.process.stderr:
        if text.startswith("preparing"):
            run.process.send_signal(signal.SIGHUP)
            break
    ended = run.end(path)
    assert (ended.code, ended.results["interrupted"]) == (0, False)


@pytest.fixture
def usual_handlers() -> Iterator[None]:
    """The handlers that a test finds, and whatever it does, leaves."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.slow
@pytest.mark.usefixtures("usual_handlers")
class TestHandlers:
    def test_the_library_installs_none(self) -> None:
        """A notebook's signals are its own."""
        before = [signal.getsignal(number) for number in SIGNALS]
        seen = []

        class Looking:
            def update(self, done: float, total: float, text: str) -> None:
                seen.append([signal.getsignal(number) for number in SIGNALS])

        pb.compare(kernels=["vecadd"], backends=["numpy"], shapes={"vecadd": [(9,)]}, budget=0.1, progress=Looking())
        assert seen
        assert all(handlers == before for handlers in seen)

    def test_are_given_back(self) -> None:
        before = [signal.getsignal(number) for number in SIGNALS]
        with interruptible():
            assert [signal.getsignal(number) for number in SIGNALS] != before
        assert [signal.getsignal(number) for number in SIGNALS] == before

    @pytest.mark.parametrize("number", SIGNALS)
    def test_the_first_interrupts_and_others_wait(self, number: signal.Signals) -> None:
        with interruptible():
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(number)
            for late in SIGNALS:
                signal.raise_signal(late)
            with pytest.raises(KeyboardInterrupt):
                let_go()

    @pytest.mark.parametrize("number", SIGNALS)
    def test_once_interrupted_a_command_ends_undisturbed(self, number: signal.Signals) -> None:
        with pytest.raises(KeyboardInterrupt), interruptible():
            signal.raise_signal(number)
        for late in SIGNALS:
            signal.raise_signal(late)

    def test_one_that_comes_while_results_are_written_waits(self) -> None:
        with interruptible():
            hold_off()
            signal.raise_signal(signal.SIGTERM)
            with pytest.raises(KeyboardInterrupt):
                let_go()

    def test_once_results_are_written_the_next_one_interrupts(self) -> None:
        with interruptible():
            hold_off()
            let_go()
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)

    def test_other_threads_run_commands_too(self) -> None:
        def enter() -> None:
            with interruptible():
                done.append(signal.getsignal(signal.SIGTERM))

        done: list[object] = []
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        assert done == [signal.getsignal(signal.SIGTERM)]
