"""Compiled kernels, kept between runs: files in a folder whose size has a bound.

A file is named by a digest of all that its content depends on, see `key`. It begins with a digest of its content, so a
damaged one counts as missing. It is written beside its place and renamed, so nobody reads a part of one, and processes
need not wait for each other. Nothing here raises: where there is no place for files, kernels are compiled every time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from py_backends.system import cache_folder, cpu

PLACE = "PY_BACKENDS_KERNEL_CACHE"
"""The variable that names another folder than the user's cache folder, or is `off`."""
MOST_BYTES = 2**28
"""Of all files together. Those that were not used for the longest time go first."""
_READ_BY_COMPILERS = (
    *("CL_", "CPATH", "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH", "DPCPP_", "IGC_", "INTEL_", "NUMBA_", "ONEAPI_"),
    *("POCL_", "PYOPENCL_", "SYCL_", "UR_", "VOLCANO_"),
)
"""Beginnings of variables by which compilers and drivers compile differently."""

_UNFINISHED = "unfinished-"
_OURS = re.compile(rf"[0-9a-f]{{64}}|{_UNFINISHED}.*")
"""Names of files that are kept here. A folder that the user names may hold others."""

T = TypeVar("T")
_of_thread = threading.local()


def key(*parts: str | bytes) -> str:
    """The name of a kernel that depends on these parts, in this order, on the CPU, and on variables of compilers.

    parts: the source and all that it includes, the options, the versions of the compiler and of the driver.
    """
    variables = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith(_READ_BY_COMPILERS))
    digest = hashlib.sha256()
    for part in ("1", *cpu.identity(), "\0".join(variables), *parts):  # 1: of the way in which files are written
        content = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        digest.update(len(content).to_bytes(8, "big"))  # so that no two lists of parts give one key
        digest.update(content)
    return digest.hexdigest()


def kept(name: str | None, load: Callable[[bytes], T], compiled: Callable[[], tuple[T, bytes | None]]) -> T:
    """A kernel from the file of that name or, if there is none, compiled, and then kept.

    name: a `key`; None for a kernel that cannot be kept.
    load: makes the kernel from what was kept. If it raises, the kernel is compiled.
    compiled: returns the kernel, and what to keep of it; None if nothing can be.
    """
    content = None if name is None else _read(name)
    if content is not None:
        with contextlib.suppress(Exception):  # whatever its library finds wrong with it
            made = load(content)
            _note(found=True)
            return made
    made, content = compiled()
    _note(found=False)
    if name is not None and content is not None:
        _write(name, content)
    return made


@contextlib.contextmanager
def watched() -> Iterator[list[bool]]:
    """Notes, for each kernel that this thread asks for meanwhile, whether it had been kept."""
    before = getattr(_of_thread, "found", None)
    _of_thread.found = []
    try:
        yield _of_thread.found
    finally:
        _of_thread.found = before


def _note(*, found: bool) -> None:
    noted: list[bool] | None = getattr(_of_thread, "found", None)
    if noted is not None:
        noted.append(found)


def _folder() -> Path | None:
    """Where the files lie; None if there is no place, or nothing is to be kept."""
    named = os.environ.get(PLACE)
    if not named:
        return cache_folder.find("kernels")
    if named == "off":
        return None
    folder = Path(named).absolute()
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder
    return None


def _read(name: str) -> bytes | None:
    folder = _folder()
    if folder is None:
        return None
    with contextlib.suppress(OSError):
        file = folder / name
        with file.open("rb") as opened:
            status = os.fstat(opened.fileno())
            if status.st_uid != os.geteuid() or status.st_mode & 0o022:  # somebody else may have written it
                return None
            whole = opened.read()
        digest, content = whole[: hashlib.sha256().digest_size], whole[hashlib.sha256().digest_size :]
        if hashlib.sha256(content).digest() == digest:
            os.utime(file)  # it was used now
            return content
        file.unlink()
    return None


def _write(name: str, content: bytes) -> None:
    folder = _folder()
    if folder is None:
        return
    with contextlib.suppress(OSError):
        descriptor, written = tempfile.mkstemp(dir=folder, prefix=_UNFINISHED)
        try:
            with open(descriptor, "wb") as file:
                file.write(hashlib.sha256(content).digest() + content)
            os.replace(written, folder / name)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(written)
            raise
        _keep_to_bound(folder)


def _keep_to_bound(folder: Path) -> None:
    """Remove files until their sizes are within the bound. What a killed process has left is one of them."""
    files = []
    for file in filter(lambda each: _OURS.fullmatch(each.name), folder.iterdir()):
        with contextlib.suppress(OSError):  # another process has removed it
            status = file.lstat()
            files.append((status.st_mtime_ns, status.st_size, file))
    excess = sum(size for _, size, _ in files) - MOST_BYTES
    for _, size, file in sorted(files):
        if excess <= 0:
            break
        with contextlib.suppress(OSError):
            file.unlink()
        excess -= size
