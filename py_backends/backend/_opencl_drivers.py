"""Makes OpenCL loaders find the drivers in wheels, beside those of the system.

A driver is a library that a loader finds by name in a folder of .icd files. Intel's CPU runtime and PoCL come as
wheels, whose libraries lie where no loader looks. pyopencl and SYCL (dpctl) have different loaders, which obey
different variables. Both obey OCL_ICD_VENDORS when it names a folder, which replaces the system's. So `find` writes a
folder of .icd files for all drivers, including the system's, and names that.

It also mends what drivers make of folders. PoCL keeps its kernels in the user's cache folder, and ends the process
where these cannot be written or loaded. Intel's runtime for CPUs looks for its own files beside itself, and takes the
path of itself to end at the first space.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from py_backends.system import cache_folder

_SYSTEM = Path("/etc/OpenCL/vendors")
_WHEELS = {"intel-opencl-rt": "libintelocl.so", "pocl-binary-distribution": "libpocl-*.so"}
"""Distributions that bring a driver, and the name of its library in each."""

_INTEL, _SETTING = "libintelocl.so", "CL_CONFIG_"
"""Intel's runtime for CPUs: the beginning of its library's name, and of the variables that it obeys."""
_POCL_CACHE = "POCL_CACHE_DIR"
_ROOM, _LITTLE = 2**23, 2**16
"""Bytes that PoCL's kernels take, with what it makes on the way to them; and those of small files and links."""

_DISUSED_AFTER = 30 * 86_400.0
"""Seconds without a use after which a second name of a library may be removed."""

_lock = threading.Lock()


def find() -> None:
    """Make the drivers of this environment known to every OpenCL loader of this process.

    Call it before the first import of pyopencl or dpctl; further calls do no harm. Drivers that the user names by
    OCL_ICD_VENDORS or OCL_ICD_FILENAMES stay. Never raises.
    """
    with _lock:
        _choose_caches()
        named = list(_named_by_user(os.environ))
        libraries = _distinct([_in_one_word(each) for each in (*named, *_from_wheels())])
        if not libraries:
            return
        folder = _folder_of(libraries)
        if folder is not None:
            os.environ["OCL_ICD_VENDORS"] = str(folder)
            os.environ.pop("OCL_ICD_FILENAMES", None)  # its drivers are in the folder now
        else:  # nothing can be written anywhere: one loader takes a list, the other takes one library in place of all
            os.environ["OCL_ICD_FILENAMES"] = os.pathsep.join(libraries)
            if not named:
                os.environ["OCL_ICD_VENDORS"] = libraries[0]


def why_pocl_would_abort() -> str | None:
    """Why PoCL cannot keep a kernel, or not load it, over which it ends the process; None where it can."""
    cache = _pocl_cache()
    return "no home folder is known" if cache is None else cache_folder.why_unusable(cache, room=_ROOM, executable=True)


def why_no_context() -> tuple[str, str] | None:
    """Why Intel's runtime for CPUs makes no context here, and what would change that; None where nothing is known."""
    for each in _named_by_user(os.environ):
        if _is_misread(each):
            where = "set TMPDIR to a folder with room for 0.1 GiB, and without spaces in its path"
            return f"Intel's runtime takes its path to end at a space: {Path(each).parent}", where
    settings = sorted(name for name in os.environ if name.startswith(_SETTING))
    if settings:
        return f"there is {' '.join(f'{name}={os.environ[name]}' for name in settings)}", f"unset {' '.join(settings)}"
    return None


def _choose_caches() -> None:
    """Have PoCL and pyopencl use other folders where the user's is of no use to them. What the user names stays."""
    if _POCL_CACHE not in os.environ and why_pocl_would_abort():
        other = cache_folder.find("pocl", room=_ROOM, executable=True)
        if other is not None:
            os.environ[_POCL_CACHE] = str(other)
    of_pyopencl = cache_folder.of_user("pytools")
    if of_pyopencl is None or cache_folder.why_unusable(of_pyopencl, room=2**20):
        os.environ.setdefault("PYOPENCL_NO_CACHE", "1")  # it would raise


def _pocl_cache() -> Path | None:
    """Where PoCL keeps kernels; None where no home folder is known."""
    if named := os.environ.get(_POCL_CACHE):
        return Path(named)
    of_user = cache_folder.of_user("pocl")
    return of_user and of_user / "kcache"


def _is_misread(library: str) -> bool:
    return Path(library).name.startswith(_INTEL) and not cache_folder.is_one_word(Path(library))


def _in_one_word(library: str) -> str:
    """The path of a library; for one that misreads it, that of a second name of it, beside links to all that it needs.

    It asks the system for the name by which it was loaded, which a symbolic link would not change. So it is a hard
    link, or a copy where file systems differ.
    """
    if not _is_misread(library):
        return library
    path = Path(os.path.realpath(library))
    with contextlib.suppress(OSError):
        size = path.stat().st_size
        for name, room in ((os.link, _LITTLE), (shutil.copy2, size + _LITTLE)):
            kept = cache_folder.find("intel-opencl", room=room, executable=True, in_one_word=True)
            if kept is not None:
                with contextlib.suppress(OSError):
                    return str(_named_again(path, kept, name))
    return library


def _named_again(library: Path, kept: Path, name: Callable[[Path, Path], object]) -> Path:
    """The library in a folder of its own, with links to all that lies beside it. OSError where that fails.

    Several processes may do so at once, and what has gone missing comes back.
    """
    facts = library.stat()
    folder = kept / _name_of(library, facts.st_size, facts.st_mtime_ns)
    folder.mkdir(exist_ok=True)
    for each in library.parent.iterdir():
        if each.is_file() and each != library:
            with contextlib.suppress(FileExistsError):
                (folder / each.name).symlink_to(each)
    other = folder / library.name
    if not (other.exists() and other.stat().st_size == facts.st_size):
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            name(library, Path(scratch, library.name))
            Path(scratch, library.name).replace(other)
    os.utime(folder)  # it was used now
    for each in kept.iterdir():
        with contextlib.suppress(OSError):  # another process removes it, or it is no folder
            _remove_if_disused(each)
    return other


def _remove_if_disused(folder: Path) -> None:
    """Remove a second name of an environment that was deleted: it would keep 100 MB.

    Links that lead nowhere here may lead somewhere on another machine with the same home, which uses the folder.
    """
    links = [link for link in folder.iterdir() if link.is_symlink()]
    if links and not any(map(Path.exists, links)) and time.time() - folder.stat().st_mtime > _DISUSED_AFTER:
        shutil.rmtree(folder, ignore_errors=True)


def _named_by_user(environment: Mapping[str, str]) -> Iterator[str]:
    """The drivers that loaders would use by themselves: those of the user's variables, else the system's."""
    yield from filter(None, environment.get("OCL_ICD_FILENAMES", "").split(os.pathsep))
    vendors = environment.get("OCL_ICD_VENDORS", "")
    if not vendors or Path(vendors).is_dir():
        for file in sorted(Path(vendors or _SYSTEM).glob("*.icd")):
            yield from _lines(file)
    elif vendors.endswith(".icd"):
        yield from _lines(Path(vendors) if "/" in vendors else _SYSTEM / vendors)
    else:
        yield vendors


def _lines(icd: Path) -> list[str]:
    """The library that an .icd file names. None where the file cannot be read."""
    try:
        return list(filter(None, map(str.strip, icd.read_text(encoding="utf-8").splitlines()[:1])))
    except (OSError, UnicodeDecodeError):
        return []


def _from_wheels() -> Iterator[str]:
    for distribution, pattern in _WHEELS.items():
        try:
            files = importlib.metadata.files(distribution) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        paths = [Path(str(file.locate())) for file in files if file.match(pattern)]
        yield from (str(path.resolve()) for path in paths if path.is_file())


def _distinct(libraries: list[str]) -> list[str]:
    """Each library once, whatever path leads to it. The loader searches for a bare name."""
    return list({os.path.realpath(name) if "/" in name else name: name for name in libraries}.values())


def _folder_of(libraries: list[str]) -> Path | None:
    """A folder with one .icd file for each library. None where no folder can be written.

    Its name depends on its content, so processes and environments can keep and share it.
    """
    kept = cache_folder.find("opencl-drivers", room=_LITTLE)
    if kept is None:
        return None
    content = {f"{rank:02}.icd": f"{library}\n" for rank, library in enumerate(libraries)}
    with contextlib.suppress(OSError):
        return cache_folder.filled(kept / _name_of(*libraries), partial(_holds, content), partial(_write, content))
    return None


def _holds(content: Mapping[str, str], folder: Path) -> bool:
    return {file.name: file.read_bytes() for file in folder.iterdir()} == {
        name: os.fsencode(line) for name, line in content.items()
    }


def _write(content: Mapping[str, str], folder: Path) -> None:
    for name, line in content.items():
        (folder / name).write_bytes(os.fsencode(line))


def _name_of(*facts: object) -> str:
    """A name for what is made from these facts alone."""
    return hashlib.sha256("\n".join(map(str, facts)).encode(errors="surrogateescape")).hexdigest()[:16]
