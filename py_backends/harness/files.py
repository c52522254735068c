"""Files as this project reads and writes them: of a bounded size, whole or not at all, with names for one line."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

LARGEST_READ = 100_000_000
"""Bytes. A long run's results take some 100,000; a device such as /dev/zero has no end at all."""


def printable(text: object) -> str:
    r"""A string or a path on one line: what cannot be printed is escaped, bytes that are not UTF-8 as `\xe9`."""
    # Python holds such bytes of a file name as lone surrogates, which no stream and no file of text takes.
    decoded = str(text).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in decoded)


def read_text(path: Path) -> str:
    """The text in a file, or out of a pipe; OSError where it cannot be read, is too large, or is a device."""
    with open(path, "rb", opener=_without_waiting) as file:
        mode = os.fstat(file.fileno()).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise OSError(errno.EINVAL, "it is a device, and no file")
        os.set_blocking(file.fileno(), True)
        content = file.read(LARGEST_READ + 1)
    if len(content) > LARGEST_READ:
        raise OSError(errno.EFBIG, f"it is larger than {LARGEST_READ / 1e6:g} MB")
    return content.decode("utf-8")


def _without_waiting(path: str, flags: int) -> int:
    """Open a file without waiting: a pipe without a writer counts as empty."""
    return os.open(path, flags | os.O_NONBLOCK)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader sees all of it or what was there before; OSError where that fails.

    A link stays one, and what it points to is written. What is no regular file, /dev/null for instance, is
    written to as it is.
    """
    encoded = content.encode("utf-8") if isinstance(content, str) else content
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        path.write_bytes(encoded)
        return
    temporary = path.with_name(f".py-backends-{os.getpid()}")  # short, as the name may be as long as names can be
    try:
        temporary.write_bytes(encoded)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
