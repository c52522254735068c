"""Starts workers, sends them requests, and reports how they end."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from io import FileIO
from pathlib import Path
from time import monotonic
from typing import Any

from py_backends.errors import fix_of
from py_backends.system import interpreter, lifetimes, surroundings, temporary
from py_backends.system.channel import Channel
from py_backends.system.descriptors import process_descriptor

MODULE = "py_backends.workers.session"
"""The module that a worker runs by default."""
ANSWER_WITHIN = 120.0
"""Seconds after which a worker that has not answered counts as hung."""
_ENDS_WITHIN = 10.0
"""Seconds that a worker may take to end after it has closed its end of the channel."""
_LOOKS_EVERY = 1.0
"""Seconds between checks whether a silent worker is still alive."""
_SLEEPING_POOL = {"OMP_WAIT_POLICY": "passive"}
"""See OpenMP 5.2, section 21.7. LLVM's and Intel's runtimes read it too."""


class WorkerFailed(Exception):
    """A request failed. `status`: the status that its row gets."""

    def __init__(self, status: str, reason: str, fix: str | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.fix = status, reason, fix


class Worker:
    """A worker process. Between requests it and its forks are stopped, so that no thread pool spins on a core.

    Other processes that compute for its device are stopped too. The worker names them when it has opened the device. If
    nothing is timed, `stopped_between` can switch this off.
    """

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        module: str = MODULE,
        patience: float | None = None,
        stopped_between: bool = True,
    ) -> None:
        """Start a worker. Raises WorkerFailed if the system lets none start.

        environment: additional environment variables.
        module: the module to run. It serves requests by `serve.serve`.
        patience: seconds without an answer after which it counts as hung. None: `ANSWER_WITHIN`.
        stopped_between: whether it is stopped between requests. Stopping takes longer than a small request itself. If
            it is not stopped, the threads of its pool sleep as soon as they have no work.
        """
        self._patience, self._stopped_between = patience, stopped_between
        sleeping = {} if stopped_between else _unless_set(_SLEEPING_POOL)
        variables = {**surroundings.OF_WORKERS, **sleeping, **(environment or {})}
        with contextlib.ExitStack() as on_failure:
            try:
                self._channel, theirs = Channel.pair()
                on_failure.callback(self._channel.close)
                on_failure.callback(theirs.close)
                self._log = _Log()
                on_failure.callback(self._log.close)
                on_failure.callback(self._log.theirs.close)
                self._folder = temporary.folder()
                if self._folder:
                    on_failure.callback(temporary.remove, self._folder)
                ends = theirs.fileno(), self._log.theirs.fileno()
                starting = lifetimes.in_lasting_thread(_start, module, *ends, variables, self._folder)
                self._process = starting.result()
            except (OSError, RuntimeError) as error:  # too many open files, processes or threads, or too little memory
                reason = getattr(error, "strerror", None) or error
                raise WorkerFailed("error", f"no worker could be started: {reason}", fix_of(error)) from error
            on_failure.pop_all()
        theirs.close()
        self._log.theirs.close()
        self._others: list[int] = []
        self._stopped = False
        self._closed = False

    @property
    def process(self) -> int:
        """The number of the process."""
        return self._process.pid

    def ask(self, do: str, descriptors: Sequence[int] = (), **arguments: Any) -> dict[str, Any]:
        """Send a request and return the answer. Raises WorkerFailed if it failed, died or did not answer."""
        try:
            self._continue()
            self._channel.send({"do": do, **arguments}, descriptors)
        except ConnectionError:
            raise WorkerFailed("crashed", self._with_log(self._how_it_ended(f"before '{do}'"))) from None
        try:
            received = self._receive()
        except TimeoutError:
            self.close()
            reason = f"no answer to '{do}' within {self._answers_within:g} s"
            raise WorkerFailed("timeout", self._with_log(reason)) from None
        if received is None:
            raise WorkerFailed("crashed", self._with_log(self._how_it_ended(f"during '{do}'")))
        for other in received.get("processes", ()):
            with contextlib.suppress(ProcessLookupError):  # it has ended, and a later request reports that
                self._others.append(process_descriptor(other))
        if self._stopped_between:
            self._stop()
        if "failed" in received:
            raise WorkerFailed(received["failed"], received["reason"], received.get("fix"))
        return received

    def kill(self) -> None:
        """End the process and its forks. A thread that waits for an answer gets WorkerFailed: it has crashed."""
        with contextlib.suppress(ProcessLookupError):  # it and its group may have ended by themselves
            os.killpg(self._process.pid, signal.SIGKILL)
        self._signal_others(signal.SIGKILL)

    def close(self) -> None:
        """End the process and its forks, and close all descriptors."""
        if self._closed:
            return
        self._closed = True
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # in a driver's system call no signal may reach it
            self._process.wait(_ENDS_WITHIN)
        if self._folder:
            temporary.remove(self._folder)
        interpreter.remove_registration(self._process.pid)
        self._channel.close()
        self._log.close()
        for other in self._others:
            os.close(other)

    @property
    def _answers_within(self) -> float:
        return ANSWER_WITHIN if self._patience is None else self._patience

    def _receive(self) -> dict[str, Any] | None:
        """The answer; None if the worker has ended without one. Its output is read meanwhile.

        The process is polled as well: a forked child may keep the channel open after the worker has ended.
        """
        deadline = monotonic() + self._answers_within
        poll = select.poll()  # select would refuse descriptors above 1023
        for end in (self._channel, self._log):
            poll.register(end.fileno(), select.POLLIN)
        while (left := deadline - monotonic()) > 0:
            ready = dict(poll.poll(1000 * min(left, _LOOKS_EVERY)))
            if self._log.fileno() in ready and not self._log.read():
                poll.unregister(self._log.fileno())  # its end is closed, so it would be ready for ever
            if self._channel.fileno() in ready:
                received = self._channel.receive()
                return received[0] if received else None
            if self._process.poll() is not None:
                return None
        raise TimeoutError

    def _stop(self) -> None:
        self._signal_all(signal.SIGSTOP)
        self._stopped = True

    def _continue(self) -> None:
        if self._stopped:
            self._signal_all(signal.SIGCONT)
            self._stopped = False

    def _signal_all(self, number: signal.Signals) -> None:
        """Send a signal to the worker, to its forks, and to the other processes of its device."""
        if self._process.poll() is None:  # after its end, its number may belong to another process
            os.killpg(self._process.pid, number)
        self._signal_others(number)

    def _signal_others(self, number: signal.Signals) -> None:
        for other in self._others:
            with contextlib.suppress(ProcessLookupError):  # it may have ended
                signal.pidfd_send_signal(other, number)

    def _how_it_ended(self, when: str) -> str:
        try:
            code = self._process.wait(_ENDS_WITHIN)
        except subprocess.TimeoutExpired:  # a thread of it is still running
            return f"the worker closed its channel {when} and did not end"
        finally:
            self.close()
        if code >= 0:
            return f"the worker exited with code {code} {when}"
        name = signal.Signals(-code).name if -code in signal.valid_signals() else f"signal {-code}"
        memory = " (out of memory?)" if -code == signal.SIGKILL else ""
        return f"the worker was ended by {name}{memory} {when}"

    def _with_log(self, reason: str) -> str:
        lines = self._log.last_lines()
        return f"{reason}; it last wrote: {' / '.join(lines)}" if lines else reason


class _Log:
    """The end of what a worker writes to its standard output and error.

    It is a pipe that is read during each request. A full pipe never blocks a worker for long: between requests it is
    stopped anyway.
    """

    _KEPT, _PIPEFUL = 4096, 1 << 20
    _LONGEST_LINE, _MOST_LINES = 500, 3

    def __init__(self) -> None:
        ours, theirs = os.pipe()
        os.set_blocking(ours, False)
        self._ours, self.theirs = FileIO(ours), FileIO(theirs, "w")
        self._end = b""

    def fileno(self) -> int:
        return self._ours.fileno()

    def read(self) -> bool:
        """Read some of the content of the pipe. Returns False if there is nothing."""
        some = self._ours.read(self._PIPEFUL)
        if some:
            self._end = (self._end + some)[-self._KEPT :]
        return bool(some)

    def last_lines(self) -> list[str]:
        """The last lines that are not empty."""
        lines = [line.strip() for line in self._end.decode(errors="replace").splitlines()]
        return [line[-self._LONGEST_LINE :] for line in lines if line][-self._MOST_LINES :]

    def close(self) -> None:
        """Read what is left in the pipe, and close it."""
        self.read()
        self._ours.close()


def _start(
    module: str, channel: int, log: int, environment: Mapping[str, str], folder: Path | None
) -> subprocess.Popen[bytes]:
    arguments = [str(channel), *([] if folder is None else [str(folder)])]
    with interpreter.without_fork_handlers():
        return subprocess.Popen(
            interpreter.command(module, *arguments),
            env=surroundings.environment(environment),
            pass_fds=[channel],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # only the harness handles Ctrl-C in a terminal
        )


def _unless_set(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name not in os.environ}
