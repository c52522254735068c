"""Standard output and standard error of a command, which may be closed, full, or have lost their reader."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_NOBODY_LOOKS = {errno.EPIPE: 1, errno.EIO: 130}
"""Exit codes where the reader of a pipe, `head` for instance, has seen enough, and where the terminal was closed."""


class OutputFailed(OSError):
    """Standard output could not be written."""


def prepare() -> None:
    """Make all three streams usable: call this before anything else is opened.

    One that the caller closed leads to the null device. Were it left closed, the next file to be opened would take
    its number, and get whatever a library prints.
    """
    for name, mode in (("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, mode)  # takes the lowest number that is free: that of the closed stream
            os.set_inheritable(descriptor, True)
            setattr(sys, name, open(descriptor, "w" if mode else "r", encoding="utf-8"))  # noqa: SIM115  # for good
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that has no µ shows a question mark


def was_closed() -> bool:
    """Whether the caller closed standard output."""
    return sys.__stdout__ is None


@contextmanager
def writing() -> Iterator[None]:
    """Write standard output within, all of it; OutputFailed where that fails."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        raise OutputFailed(error.errno, error.strerror or str(error)) from error


def complain(line: str) -> None:
    """One line on standard error, where that can be written."""
    with suppress(OSError):
        sys.stderr.write(f"py-backends: {line}\n")


def give_up(error: OSError) -> int:
    """The exit code after standard output failed; says so in one line, unless there is nobody left to read it.

    An error that has nothing to do with output is raised again.
    """
    if not isinstance(error, OutputFailed) and error.errno not in _NOBODY_LOOKS:
        raise error
    if error.errno not in _NOBODY_LOOKS:
        complain(f"error: standard output was not written: {error.strerror}")
    # What is still in the buffer goes nowhere; else Python would fail once more in writing it when it ends.
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _NOBODY_LOOKS.get(error.errno or 0, 1)
