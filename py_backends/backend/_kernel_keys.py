"""What a compiled kernel depends on beside its options: all files that the compiler reads, compilers and drivers.

It names the kernel in `kernel_store`. Files of the system stand in it by their sizes, and the times of their last
change.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

_LINE = re.compile(rb"(?:#|%:)(?:[ \t]|/\*.*?\*/)*(?:include|include_next|import|embed)\b[ \t]*(.*)")
_NAME = re.compile(rb'"([^"]+)"|<([^>]+)>')
_DEPENDS_ON_MORE = rb"__has_include", rb"__has_embed"
_FURTHER_FOLDERS = "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"
_LIBRARIES = re.compile(r"/lib(?:sycl|intelocl|pocl|igdrcl|amdocl|nvidia-opencl|ur_)[^/]*\.so")
_HEADERS = "usr/include", "usr/include/c++/*", "usr/include/c++/*/bits", "usr/lib/gcc/*/*", "usr/local/include"


def files_read(source: Path, content: bytes) -> list[bytes] | None:
    """The name and the content of the source, and of each file that it includes directly or through others.

    None if that cannot be told: `#include MACRO`, `__has_include`, a file that is nowhere, further folders of headers.

    content: of the source, which includes files by names relative to their own folder, or to the source's.
    """
    if any(os.environ.get(variable) for variable in _FURTHER_FOLDERS):
        return None
    read = {source: content}
    for file in (files := [source]):  # which grows meanwhile
        names = _names(read[file])
        if names is None:
            return None
        for name, quoted in names:
            included = _found(name, [file.parent, source.parent] if quoted else [source.parent])
            if included is None and quoted:
                return None
            if included is not None and included not in read:
                read[included] = included.read_bytes()
                files.append(included)
    return [part for file in files for part in (os.fsencode(os.path.relpath(file, source.parent)), read[file])]


def includes_nothing(source: bytes) -> bool:
    """Whether a compiler reads this source alone."""
    return _names(source) == []


def of_system() -> str:
    """The compilers and drivers that this process has loaded, and the system's headers.

    Whatever they call their version: a library that was built again is another one.
    """
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        loaded = {Path(line.split(maxsplit=5)[-1].strip()) for line in maps if _LIBRARIES.search(line)}
    # The SYCL runtime loads its compiler when that is needed, from beside itself.
    libraries = {file for library in loaded for file in (library, library.with_name("libsycl-jit.so"))}
    folders = [folder for pattern in _HEADERS for folder in Path("/").glob(pattern)]
    return "\n".join(sorted(_fact(file) for file in (*libraries, *folders) if file.exists()))


def of_folder(folder: str) -> str:
    """Every file in a folder of headers."""
    return "\n".join(sorted(map(_fact, filter(Path.is_file, Path(folder).rglob("*")))))


def _fact(file: Path) -> str:
    status = file.stat()
    return f"{file.name} {status.st_size} {status.st_mtime_ns}"


def _names(content: bytes) -> list[tuple[str, bool]] | None:
    """The names in its lines, and whether they stand in quotes. None if what it includes depends on more than names."""
    joined = re.sub(rb"\\[ \t]*\r?\n", b"", content)
    if any(each in joined for each in _DEPENDS_ON_MORE):
        return None
    found = [_NAME.match(line[1]) for line in _LINE.finditer(joined)]
    if not all(found):
        return None
    return [(os.fsdecode(name[1] or name[2]), name[1] is not None) for name in found if name]


def _found(name: str, folders: list[Path]) -> Path | None:
    places = (Path(os.path.normpath(folder / name)) for folder in folders)
    return next((place for place in places if place.is_file()), None)
