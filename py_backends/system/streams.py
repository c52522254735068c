"""Standard output and standard error of a command. They may be closed, full, or without a reader."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_EXIT_CODES = {errno.EPIPE: 1, errno.EIO: 130}
"""Exit codes if the reader of a pipe, such as `head`, has ended, and if the terminal was closed."""


class OutputFailed(OSError):
    """Standard output could not be written."""


def prepare() -> None:
    """Make all three streams usable. Call this before any file is opened.

    A stream that the caller closed is redirected to the null device. If it stayed closed, the next file to be opened
    would take its number, and receive whatever a library prints.
    """
    for name, mode in (("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, mode)  # takes the lowest free number: that of the closed stream
            os.set_inheritable(descriptor, True)
            setattr(sys, name, open(descriptor, "w" if mode else "r", encoding="utf-8"))  # noqa: SIM115  # it stays open
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without µ shows a question mark


def was_closed() -> bool:
    """Whether the caller closed standard output."""
    return sys.__stdout__ is None


@contextmanager
def writing() -> Iterator[None]:
    """Flush standard output at the end. Raises OutputFailed if something within could not be written."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        raise OutputFailed(error.errno, error.strerror or str(error)) from error


def complain(line: str) -> None:
    """Write one line to standard error, if possible."""
    with suppress(OSError):
        sys.stderr.write(f"py-backends: {line}\n")


def give_up(error: OSError) -> int:
    """Report in one line that standard output failed, if anybody can read it, and return the exit code.

    An error that does not concern output is raised again.
    """
    if not isinstance(error, OutputFailed) and error.errno not in _EXIT_CODES:
        raise error
    if error.errno not in _EXIT_CODES:
        complain(f"error: standard output was not written: {error.strerror}")
    # Discard what is still in the buffer. Otherwise Python would fail again when it writes the buffer at its end.
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _EXIT_CODES.get(error.errno or 0, 1)
