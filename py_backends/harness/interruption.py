"""Ends a command by a signal without losing what it has finished.

A command line runs within `interruptible`: Ctrl-C, SIGTERM and SIGHUP (the terminal was closed) all raise
KeyboardInterrupt, and the first of them alone. From then on, or from `hold_off` where no signal came, they wait, so
that results are put together and written; `let_go` says that they are.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Scope:
    """What became of the signals of one command."""

    def __init__(self) -> None:
        self.held_off = False
        self.came_late = False
        self.interrupted = False

    def handle(self, number: int, frame: object) -> None:
        if self.held_off:
            self.came_late = True
            return
        self.held_off = self.interrupted = True
        raise KeyboardInterrupt


_scope: _Scope | None = None
"""The handlers of the running command; none in a notebook, which has its own."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Within, the first signal interrupts; afterwards all signals do what they did before.

    After an interruption they are ignored: the process is about to end, and is not to be disturbed in that.

    One that was ignored, as `nohup` and shells in the background have it, stays so. Outside of the main thread, which
    alone gets signals, this does nothing.
    """
    global _scope  # noqa: PLW0603  # signals are the process's, and so is what becomes of them
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    scope = _Scope()
    before = {number: signal.getsignal(number) for number in SIGNALS}
    _scope = scope
    try:
        for number in SIGNALS:
            if before[number] is not signal.SIG_IGN:
                signal.signal(number, scope.handle)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if scope.interrupted else handler)
        _scope = None


def hold_off() -> None:
    """From here on results are put together and written: signals wait."""
    if _scope:
        _scope.held_off = True


def let_go() -> None:
    """Results are written: signals that waited interrupt now, and others from now on."""
    if _scope:
        late, _scope.held_off, _scope.came_late = _scope.came_late, False, False
        if late:
            _scope.held_off = _scope.interrupted = True
            raise KeyboardInterrupt
