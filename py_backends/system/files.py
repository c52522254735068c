"""Reads files up to a largest size, and writes them whole or not at all: checks of that, and printable names."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from py_backends.errors import WrongRequest
from py_backends.system import streams

LARGEST_READ = 100_000_000
"""Bytes. The results of a long run take some 100,000 bytes. A device such as /dev/zero would never end."""


_NOT_TO_REPLACE = {errno.EBUSY, errno.EPERM, errno.EACCES, errno.EROFS, errno.EXDEV}
"""How it fails to put another file in the place of one that may be written."""


def printable(text: object) -> str:
    r"""A string or a path on one line. Unprintable characters are escaped, and bytes that are not UTF-8 as `\xe9`."""
    # Python holds such bytes of a file name as lone surrogates, which cannot be encoded.
    decoded = str(text).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in decoded)


def read_text(path: Path) -> str:
    """The decoded content of a file or a pipe. Raises OSError if it cannot be read, is too large, or is a device."""
    with open(path, "rb", opener=_without_waiting) as file:
        mode = os.fstat(file.fileno()).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise OSError(errno.EINVAL, "it is a device, not a file")
        os.set_blocking(file.fileno(), True)
        content = file.read(LARGEST_READ + 1)
    if len(content) > LARGEST_READ:
        raise OSError(errno.EFBIG, f"it is larger than {LARGEST_READ / 1e6:g} MB")
    return content.decode("utf-8-sig")  # some editors and shells begin a file with a byte order mark


def _without_waiting(path: str, flags: int) -> int:
    """Open a file without waiting. A pipe without a writer counts as empty."""
    return os.open(path, flags | os.O_NONBLOCK)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file. A reader sees the whole new file or the old one. Raises OSError if that fails.

    A symbolic link stays, and its target is written. What cannot be replaced is written in place. That is a file that
    is not regular, such as /dev/null, one that is mounted, as into a container, or one in a folder of others.
    """
    encoded = content.encode("utf-8") if isinstance(content, str) else content
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        path.write_bytes(encoded)
        return
    temporary = path.with_name(f".py-backends-{os.getpid()}")  # short: the file's own name may have the longest length
    try:
        temporary.write_bytes(encoded)
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if not (isinstance(error, OSError) and error.errno in _NOT_TO_REPLACE and _may_be_written(path)):
            raise
        path.write_bytes(encoded)


def _may_be_written(path: Path) -> bool:
    """Whether there is a regular file that can be written, whatever its folder allows."""
    return path.is_file() and os.access(path, os.W_OK)


def check_writable(path: Path) -> None:
    """Check, before anything runs, that this file can be written at the end. Raises WrongRequest if not."""
    shown = printable(path)
    if str(path) == "-":
        raise WrongRequest("- stands for standard output elsewhere, and is no file here: name another")
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):  # a new file; its folder is checked below
        mode = stat.S_IFREG
    except OSError as error:  # for instance too long a name, or a link to itself
        raise WrongRequest(f"{shown} cannot be written to ({error.strerror}): name another file") from error
    if stat.S_ISDIR(mode):
        raise WrongRequest(f"{shown} is a folder: name a file")
    if stat.S_ISCHR(mode) and os.access(path, os.W_OK):  # such as /dev/null
        return
    if not stat.S_ISREG(mode):
        raise WrongRequest(f"{shown} is a pipe or a device: name a file")
    target = real_path(path)  # the target of a link is written
    if not _may_be_written(target):
        _check_folder(target)


def real_path(path: Path) -> Path:
    """Where a path leads, through all links. Raises WrongRequest if the current folder, where it begins, is gone."""
    try:
        return Path(os.path.realpath(path))
    except FileNotFoundError as error:
        raise WrongRequest(
            f"{printable(path)} is a name in the current folder, which was removed: change to another"
        ) from error


def _check_folder(path: Path) -> None:
    folder = printable(path.parent)
    if not path.parent.is_dir():
        raise WrongRequest(f"there is no folder {folder} to write {printable(path.name)} in")
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".py-backends-"):
            pass
    except OSError as error:
        raise WrongRequest(f"{folder} cannot be written to ({error.strerror}): name a file elsewhere") from error


def written(path: Path, write: Callable[[Path], None]) -> bool:
    """Write a file. If that fails, print one line on standard error."""
    try:
        write(path)
    except (OSError, ValueError) as error:  # matplotlib raises ValueError for what it cannot draw
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        streams.complain(f"error: {printable(path)} was not written: {printable(reason)}")
        return False
    return True
