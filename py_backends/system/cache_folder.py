"""Folders for what is kept between runs: private, with room, and where files may be executed if they have to be.

A home folder may exist and be of no use: read-only, full, over its quota, or mounted `noexec`. That it may be written
to says none of that, nor does the free room of its file system, which knows no quotas. So a file is tried.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import platformdirs

_OURS = "py-backends"
_TEMPORARY = "/tmp", "/var/tmp"  # noqa: S108  # each user has a folder of their own there


def find(name: str, *, room: int = 2**20, executable: bool = False, in_one_word: bool = False) -> Path | None:
    """A folder of that name for this user alone, made if it is missing; None where there is no place for one.

    name: relative, within the folder of this distribution.
    room: bytes that can be written to it now.
    executable: whether libraries in it can be loaded.
    in_one_word: whether its path has no white space, for those who take a path to end there.

    It lies in the user's cache folder, or where that is of no use in a temporary one. This takes about 0.1 ms, so ask
    again where a folder may have become full meanwhile.
    """
    for ours in _places():
        if in_one_word and not is_one_word(ours):
            continue
        with contextlib.suppress(OSError):
            ours.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_owner(ours)
            folder = ours / name
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if why_unusable(folder, room=room, executable=executable) is None:
                return folder
    return None


def of_user(name: str) -> Path | None:
    """A folder of that name in the user's cache folder, there or not. None where no home folder is known.

    A container may run with a user that the system does not know, and without HOME.
    """
    try:
        folder = platformdirs.user_cache_path(name)
    except RuntimeError:
        return None
    return folder if folder.is_absolute() else None


def filled(folder: Path, is_whole: Callable[[Path], bool], fill: Callable[[Path], None]) -> Path:
    """The folder, filled where it is not there as a whole: beside its place, and then renamed. OSError if that fails.

    Several processes may do so at once. So what it contains should depend on its name alone.
    """
    if folder.is_dir():
        with contextlib.suppress(OSError):
            if is_whole(folder):
                return folder
        shutil.rmtree(folder, ignore_errors=True)  # of temporary folders the system deletes old files
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        fresh = Path(scratch, "fresh")
        fresh.mkdir()
        fill(fresh)
        try:
            fresh.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was first
                raise
    return folder


def why_unusable(folder: Path, *, room: int, executable: bool = False) -> str | None:
    """Why files of so many bytes cannot be kept in a folder, as the end of a sentence; None where they can.

    The folder, or the nearest above it that exists, is tried by a file that has no name and vanishes.
    """
    there = next((each for each in (folder, *folder.parents) if each.is_dir()), folder)
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            os.posix_fallocate(file.fileno(), 0, max(room, 1))
            if executable:
                mmap.mmap(file.fileno(), 1, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC).close()
    except OSError as error:
        return _words(there, error, room, executable=executable)
    return None


def is_one_word(path: Path) -> bool:
    """Whether a path has no white space."""
    return len(str(path).split()) == 1


def _words(folder: Path, error: OSError, room: int, *, executable: bool) -> str:
    """What an error says of a folder."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{folder} has no {room / 2**20:.3g} MiB left"
    if error.errno == errno.EFBIG:
        return f"this process may write no file of {room / 2**20:.3g} MiB"
    if executable and os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return f"{folder} is mounted noexec"
    return f"{folder} cannot be used: {os.strerror(error.errno or 0)}"


def _places() -> Iterator[Path]:
    """Where the folder of this distribution may lie, the preferred place first."""
    if (ours := of_user(_OURS)) is not None:
        yield ours
    temporary = [*_TEMPORARY]
    with contextlib.suppress(OSError):  # none of the usual ones can be written to
        temporary.insert(0, tempfile.gettempdir())
    for each in dict.fromkeys(temporary):
        yield Path(each, f"{_OURS}-{os.getuid()}")


def _check_owner(folder: Path) -> None:
    """Raise PermissionError if others could put something in its place: libraries in it are loaded."""
    if {folder.lstat().st_uid, folder.stat().st_uid} != {os.getuid()}:
        raise PermissionError(f"{folder} belongs to someone else")
