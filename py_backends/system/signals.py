"""Lets a signal end a command without losing finished results.

A command runs within `interruptible`. The first Ctrl-C, SIGTERM or SIGHUP (a closed terminal) raises KeyboardInterrupt.
Later signals wait while the command combines and writes its results. If no signal came, they wait from `hold_off` on.
`let_go` ends the wait once the results are written.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Scope:
    """The state of one command: whether signals wait, and which came."""

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
"""The running command; None in a notebook, which has handlers of its own."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Within, the first signal raises KeyboardInterrupt. Afterwards the earlier handlers are restored.

    After an interruption signals are ignored instead: the process is about to end, and nothing may disturb that.

    A signal that was ignored before stays ignored, as under `nohup`. Outside of the main thread, which alone receives
    signals, this does nothing.
    """
    global _scope  # noqa: PLW0603  # a process has one set of signal handlers
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


@contextmanager
def children_are_waited_for() -> Iterator[None]:
    """Within, how children end can be told, and they inherit no ignored SIGCHLD.

    Some servers and launchers ignore that signal. Then Linux forgets how a child ended, and each seems to have ended
    well. Outside of the main thread, which alone may change that, this does nothing.
    """
    ignored = signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
    if not ignored or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def hold_off() -> None:
    """Let signals wait from now on, while results are combined and written."""
    if _scope:
        _scope.held_off = True


def let_go() -> None:
    """End the wait, since results are written: a signal that waited interrupts now, and later ones at once."""
    if _scope:
        late, _scope.held_off, _scope.came_late = _scope.came_late, False, False
        if late:
            _scope.held_off = _scope.interrupted = True
            raise KeyboardInterrupt
