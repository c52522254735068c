"""Workers that cannot be ended."""

from __future__ import annotations

import pytest

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
