"""Workers that cannot be ended, and what those are started with that nobody stops."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from commands import LONGEST

from py_backends.harness import workers


def test_a_worker_that_no_signal_reaches_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that a driver keeps within the kernel of the system."""
    worker = workers.Worker()
    kill = worker.kill
    monkeypatch.setattr(worker, "kill", lambda: None)
    monkeypatch.setattr(workers, "_ENDS_WITHIN", 0.01)
    worker.close()
    assert worker._process.poll() is None
    kill()
    worker._process.wait(10)


@pytest.mark.parametrize(("stopped_between", "policies"), [(True, []), (False, ["OMP_WAIT_POLICY=passive"])])
def test_only_a_worker_that_is_not_stopped_has_a_pool_that_sleeps(
    stopped_between: bool, policies: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timed kernel finds its threads as its user's would be."""
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    worker = workers.Worker(stopped_between=stopped_between)
    environment = _environment(worker.process)
    worker.close()
    assert [each for each in environment if each.startswith("OMP_WAIT_POLICY=")] == policies


def test_a_killed_worker_leaves_no_registration_of_its_openmp_behind() -> None:
    """Intel's, which MKL_THREADING_LAYER=INTEL loads. Two files for each comparison, hundreds after a day."""
    worker = workers.Worker()
    registered = workers._REGISTERED.format(process="{}", user=os.getuid())
    own, of_another = (Path(registered.format(process)) for process in (worker.process, os.getpid()))
    there = of_another.exists()
    try:
        for each in own, of_another:
            each.touch()
        worker.close()
        assert (own.exists(), of_another.exists()) == (False, True)
    finally:
        own.unlink(missing_ok=True)
        if not there:
            of_another.unlink(missing_ok=True)


def _environment(process: int) -> list[str]:
    """Its variables. Linux shows none for a moment while a program is being started."""
    variables, deadline = "", time.monotonic() + LONGEST
    while not variables and time.monotonic() < deadline:
        variables = Path(f"/proc/{process}/environ").read_text(encoding="utf-8")
    return variables.split("\0")
