"""Makes OpenCL loaders find the drivers in wheels, beside those of the system.

A driver is a library that a loader finds by name in a folder of .icd files. Intel's CPU runtime and PoCL come as
wheels, whose libraries lie where no loader looks. pyopencl and SYCL (dpctl) have different loaders, which obey
different variables. Both obey OCL_ICD_VENDORS when it names a folder, which replaces the system's. So `find` writes a
folder of .icd files for all drivers, including the system's, and names that.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import platformdirs

_SYSTEM = Path("/etc/OpenCL/vendors")
_WHEELS = {"intel-opencl-rt": "libintelocl.so", "pocl-binary-distribution": "libpocl-*.so"}
"""Distributions that bring a driver, and the name of its library in each."""

_lock = threading.Lock()


def find() -> None:
    """Make the drivers of this environment known to every OpenCL loader of this process.

    Call it before the first import of pyopencl or dpctl; further calls do no harm. Drivers that the user names by
    OCL_ICD_VENDORS or OCL_ICD_FILENAMES stay. Never raises.
    """
    with _lock:
        libraries = _distinct([*_named_by_user(os.environ), *_from_wheels()])
        if not libraries:
            return
        folder = _folder_of(libraries)
        if folder is not None:
            os.environ["OCL_ICD_VENDORS"] = str(folder)
            os.environ.pop("OCL_ICD_FILENAMES", None)  # its drivers are in the folder now


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
    content = "\n".join(libraries)
    name = f"opencl-drivers-{hashlib.sha256(content.encode()).hexdigest()[:16]}"
    with contextlib.suppress(OSError):
        return _written(platformdirs.user_cache_path("py-backends") / name, libraries)
    with contextlib.suppress(OSError):  # a home that is read-only, full or missing
        temporary = Path(tempfile.gettempdir(), f"py-backends-{os.getuid()}")
        written = _written(temporary / name, libraries)
        os.environ.setdefault("PYOPENCL_NO_CACHE", "1")  # fails without a home folder, as PoCL does
        os.environ.setdefault("POCL_CACHE_DIR", str(temporary / "pocl"))
        return written
    return None


def _written(folder: Path, libraries: list[str]) -> Path:
    """The folder with that content, written beside its place and renamed. OSError where that fails."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.parent.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder.parent} belongs to someone else")  # loaders run the libraries that it names
    if not os.access(folder.parent, os.W_OK):
        raise PermissionError(f"{folder.parent} cannot be written")
    content = {f"{rank:02}.icd": f"{library}\n" for rank, library in enumerate(libraries)}
    if folder.is_dir():
        if {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir()} == content:
            return folder
        shutil.rmtree(folder)  # of temporary folders the system deletes old files
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        fresh = Path(scratch, "vendors")
        fresh.mkdir()
        for name, line in content.items():
            (fresh / name).write_text(line, encoding="utf-8")
        try:
            fresh.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was first
                raise
    return folder
