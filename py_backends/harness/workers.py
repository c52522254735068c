"""Starts workers, asks them, and tells how one ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import py_backends
from py_backends.harness.channel import Channel

MODULE = "py_backends.harness.worker"
"""What a worker runs, where nothing else is named."""
ANSWER_WITHIN = 120.0
"""Seconds after which a worker that has not answered is taken for hung."""
_ENDS_WITHIN = 10.0
"""Seconds that a worker may take to end once it has closed its end of the channel."""


class WorkerFailed(Exception):
    """A request that brought no result: `status` is what the row becomes."""

    def __init__(self, status: str, reason: str, fix: str | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.fix = status, reason, fix


class Worker:
    """A worker process. Between requests it is stopped, so that no pool of its spins on a core."""

    _STATUS_OF_FAILURE = {"unavailable": "unavailable", "memory": "skipped", "error": "error", "fault": "crashed"}

    def __init__(self, environment: Mapping[str, str] | None = None, module: str = MODULE) -> None:
        """Start `module`, which serves requests (`worker.serve`), with additional variables."""
        self._channel, theirs = Channel.pair()
        self._log = os.memfd_create("py-backends-worker-log")
        self._process = _starter.submit(_start, module, theirs.fileno(), self._log, environment or {}).result()
        theirs.close()
        self._stopped = False
        self._closed = False

    @property
    def process(self) -> int:
        """The number of the process."""
        return self._process.pid

    def ask(self, do: str, descriptors: Sequence[int] = (), **arguments: Any) -> dict[str, Any]:
        """Have the worker do something; WorkerFailed where it failed, died or did not answer."""
        try:
            self._continue()
            self._channel.send({"do": do, **arguments}, descriptors)
            received = self._channel.receive(ANSWER_WITHIN)
        except TimeoutError:
            self.close()
            reason = f"no answer to '{do}' within {ANSWER_WITHIN:g} s"
            raise WorkerFailed("timeout", self._with_log(reason)) from None
        except ConnectionError:
            received = None
        if received is None:
            raise WorkerFailed("crashed", self._with_log(self._how_it_ended(do)))
        answer, _ = received
        self._stop()
        if "failed" in answer:
            status = self._STATUS_OF_FAILURE[answer["failed"]]
            raise WorkerFailed(status, answer["reason"], answer.get("fix"))
        return answer

    def close(self) -> None:
        """End the process and whatever it started."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(ProcessLookupError):  # it may have ended by itself, and its group with it
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._channel.close()

    def __del__(self) -> None:
        os.close(self._log)

    def _stop(self) -> None:
        self._process.send_signal(signal.SIGSTOP)
        self._stopped = True

    def _continue(self) -> None:
        if self._stopped:
            self._process.send_signal(signal.SIGCONT)
            self._stopped = False

    def _how_it_ended(self, do: str) -> str:
        try:
            code = self._process.wait(_ENDS_WITHIN)
        except subprocess.TimeoutExpired:  # a thread that it left behind keeps it
            return f"the worker hung up during '{do}' and did not end"
        finally:
            self.close()
        if code >= 0:
            return f"the worker exited with code {code} during '{do}'"
        name = signal.Signals(-code).name if -code in signal.valid_signals() else f"signal {-code}"
        memory = " (out of memory?)" if -code == signal.SIGKILL else ""
        return f"the worker was ended by {name}{memory} during '{do}'"

    def _with_log(self, reason: str) -> str:
        size = os.fstat(self._log).st_size
        tail = os.pread(self._log, 1000, max(0, size - 1000)).decode(errors="replace")
        lines = [line.strip() for line in tail.splitlines() if line.strip()][-3:]
        return f"{reason}; it last wrote: {' / '.join(lines)}" if lines else reason


_starter = ThreadPoolExecutor(1, "py-backends-worker-starter")
"""Starts all workers from one thread that lives as long as the process: Linux ends a worker, which asked
for that, when the *thread* that started it ends."""


def _renew_starter() -> None:
    """In a forked child, which has the object but not its thread."""
    global _starter  # noqa: PLW0603  # there is one a process, and a child needs its own
    _starter = ThreadPoolExecutor(1, "py-backends-worker-starter")


os.register_at_fork(after_in_child=_renew_starter)


def _start(module: str, channel: int, log: int, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, str(channel)],
        env=_environment(environment),
        pass_fds=[channel],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,  # Ctrl-C in a terminal is the harness's affair
    )


def _environment(additional: Mapping[str, str]) -> dict[str, str]:
    """Ours, with what the target needs; from a clone the worker has to find the same package as we."""
    environment = {**os.environ, **additional}
    home = Path(py_backends.__file__).parent.parent
    if (home / "CMakeLists.txt").is_file():
        paths = [str(home), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return environment
