"""C++ that was not compiled ahead of time: compiled when it is first run, as CMake compiles what is, and kept.

A library has one kernel, for one number format and instruction set, behind the same entry as in the extension modules
(cpp_ext/instance.hpp). Its module calls it as one of its own, so that it is made without headers of Python.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from py_backends import _compiled, registry
from py_backends.errors import BackendUnavailable
from py_backends.kernel_text import KernelText
from py_backends.system import cxx, kernel_store, surroundings, temporary
from py_backends.system.descriptors import unnamed_file
from py_backends.wording import in_one_line

Run = Callable[[Sequence[Any], Sequence[Any], int], None]
"""Runs a kernel on arrays (inputs, then outputs) at these sizes, on so many threads."""
_OPTIMISED = "-std=c++17", "-O3", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra"
_LONGEST = 300
_MOST_LINES = 3
_SOURCE = """\
#include "{source}"

#include "instance.hpp"

template <typename P>
using Seen = std::conditional_t<std::is_pointer_v<P>, std::remove_const_t<std::remove_pointer_t<P>>*,
                                std::conditional_t<std::is_floating_point_v<P>, double, P>>;
template <typename Result, typename... P>
std::is_same<void(Seen<P>...), void({parameters})> fits(Result (*)(P...));
static_assert(decltype(fits(&{kernel}<dtypes::{dtype}>))::value, "its parameters are not those of its kernel: {words}");

static constexpr Format formats[] = {{Entry<&{kernel}<dtypes::{dtype}>>::format()}};
extern const Instance at_run_time;
constexpr Instance at_run_time = {{"{kernel}", "", "", "", formats, 1, 0, 0}};

#include "own_part.cpp"

#define VISIBLE extern "C" __attribute__((visibility("default")))
VISIBLE bool py_backends_kernel(void* const* arrays, const std::int64_t* sizes) {{
  return formats[0].run(arrays, sizes);
}}
VISIBLE bool py_backends_on_threads(UniformKernel run, void* const* arrays, const std::int64_t* sizes, int threads) {{
  return run_on_threads(run, arrays, sizes, threads);
}}
VISIBLE void py_backends_once() {{ survive_forks(); }}
"""


def prepared(text: KernelText, module: str, instruction_set: str, dtype: str) -> Run:
    """A source of a backend's module, compiled now or before.

    A kept one is named by the contents of the source and of what it includes. It counts while all else that the
    compiler read is as it was: headers that an option of `CXX` finds, and the system's.

    Raises BackendUnavailable where there is no compiler, and RuntimeError, with the compiler's lines, where it refuses
    the source.
    """
    compiler, flags, of_some = cxx.compiler(), _flags(module, instruction_set), _of_some_compilers()
    program = str(Path(str(shutil.which(compiler[0]))).resolve())
    shared = (*_headers().glob("*.[ch]pp"), *registry.kernels_folder().glob("*.hpp"))
    own = [file.read_bytes() for file in sorted(shared)]
    files = [part for file in text.files for part in (os.fsencode(file.name), file.read_bytes())]
    name = kernel_store.key(
        "cpp", _SOURCE, program, _facts(program), *compiler, *flags, *of_some, dtype, text.kernel, *own, *files
    )

    def load(content: bytes) -> ctypes.CDLL:
        others, _, library = content.partition(b"\n")
        if any(_facts(file) != before for file, before in json.loads(others).items()):
            raise ValueError("it was made of another file")
        return _load(library)

    def compiled() -> tuple[ctypes.CDLL, bytes]:
        known = [flag for flag in of_some if _knows(compiler, flag)]
        library, read = _compile(text, dtype, [*compiler, *flags, *known, *(f"-I{each}" for each in _included_from())])
        in_name = {file.resolve() for file in (*shared, *text.files)}
        others = {file: _facts(file) for file in read if Path(file).resolve() not in in_name}
        return _load(library), json.dumps(others).encode() + b"\n" + library

    library = kernel_store.kept(name, load, compiled)
    return _launched(library, text, module, dtype)


def _launched(library: ctypes.CDLL, text: KernelText, module: str, dtype: str) -> Run:
    """Called by the extension module, as its own kernels are: by ctypes alone, a call would cost microseconds more."""
    problem = text.problem
    entries = library.py_backends_kernel, library.py_backends_on_threads
    kernel, on_threads = (ctypes.cast(each, ctypes.c_void_p).value for each in entries)
    launch: Run = _compiled.load(module).Launch(
        kernel,
        on_threads,
        [each.name for each in problem.array_dtypes(np.dtype(dtype))],
        problem.outputs,
        [name in problem.reals for name in problem.parameters],
        text.place,
    )
    return launch


def _load(content: bytes) -> ctypes.CDLL:
    """A library from memory, since a folder may forbid programs.

    The loader knows a library by its path. So no other may come to lie there, and the descriptor stays open.
    """
    descriptor = unnamed_file("py-backends-cpp")
    os.set_inheritable(descriptor, False)
    os.write(descriptor, content)
    library = ctypes.CDLL(f"/proc/self/fd/{descriptor}")
    library.py_backends_once()
    return library


def _compile(text: KernelText, dtype: str, command: Sequence[str]) -> tuple[bytes, list[str]]:
    """A library, and the files that the compiler has read for it, the system's too."""
    folder = temporary.folder()
    if folder is None:
        reason = f"{tempfile.gettempdir()} has no place for a temporary folder, in which C++ is compiled"
        raise BackendUnavailable(reason, "set TMPDIR to a folder that can be written to")
    try:
        source, library, read = (folder / f"at_run_time.{ending}" for ending in ("cpp", "so", "d"))
        source.write_text(_source(text, dtype), encoding="utf-8")
        Path(folder, "instances.inc").write_text("INSTANCE(at_run_time)\n", encoding="utf-8")
        status, said = _ran(
            [*command, f"-I{folder}", str(source), "-o", str(library), "-MD", "-MF", str(read), *_link_flags()]
        )
        if status != 0:
            lines = [line for line in said.splitlines() if "error" in line.lower()] or said.splitlines()
            raise RuntimeError(f"{command[0]} does not compile it: {in_one_line('; '.join(lines[:_MOST_LINES]))}")
        files = _named_in(read.read_text(encoding="utf-8", errors="surrogateescape"))
        return library.read_bytes(), [file for file in files if Path(file).parent != folder]
    finally:
        temporary.remove(folder)


def _named_in(rule: str) -> list[str]:
    """The files that a rule for make depends on, as compilers write it: `-MD`."""
    _, _, files = rule.replace("\\\n", " ").partition(": ")
    return [re.sub(r"\\([ #])", r"\1", each).replace("$$", "$") for each in re.split(r"(?<!\\)\s+", files) if each]


def _ran(command: Sequence[str]) -> tuple[int, str]:
    """How a compiler ended, and what it said. It is ended with all that it has started, if it takes too long.

    It has no process group of its own, since a worker is ended with its group.
    """
    with subprocess.Popen(
        command,
        env={**os.environ, **surroundings.OF_COMPILERS},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        try:
            _, said = process.communicate(timeout=_LONGEST)
        except BaseException as ended:  # also Ctrl-C, of which a notebook's compiler does not learn
            _end(process.pid)
            if isinstance(ended, subprocess.TimeoutExpired):
                raise RuntimeError(f"{command[0]} has not compiled it within {_LONGEST} s") from None
            raise
    return process.returncode, said


def _end(process: int) -> None:
    """End a process, and all that it has started."""
    import psutil  # takes longer than the rest, and is rarely needed

    with contextlib.suppress(psutil.Error):  # it has ended by itself
        found = psutil.Process(process)
        for each in [found, *found.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                each.kill()


def _source(text: KernelText, dtype: str) -> str:
    """What is compiled: the kernel's source, and its entry. A source with other parameters than its problem's fails."""
    problem = text.problem
    arrays = [f"dtypes::{each.name}*" for each in problem.array_dtypes(np.dtype(dtype))]
    numbers = ["double" if name in problem.reals else "std::int64_t" for name in problem.parameters]
    named = [*problem.inputs, *["output"] * problem.outputs, *problem.parameters]
    return _SOURCE.format(
        source=text.path,
        kernel=text.kernel,
        dtype=dtype,
        parameters=", ".join((*arrays, *numbers)),
        words=", ".join(f"{kind} {name}" for kind, name in zip((*arrays, *numbers), named, strict=True)),
    )


def _flags(module: str, instruction_set: str) -> list[str]:
    """Those of the extension modules, as their build recorded them, and oneTBB's headers where it is needed."""
    recorded = _compiled.build().get("flags")
    if recorded is None:
        raise BackendUnavailable("the build did not record how C++ is compiled", "make, or pip install .")
    own = recorded["modules"].get(module, [])
    headers = [f"-I{_headers_of_tbb()}"] if "-DPY_BACKENDS_TBB" in own else []
    return [*_OPTIMISED, *recorded["all"], *own, *recorded["sets"][instruction_set], *headers]


def _of_some_compilers() -> list[str]:
    """Flags that not every compiler knows. The build may have used another one than is here."""
    flags: list[str] = _compiled.build()["flags"].get("of_some_compilers", [])
    return flags


def _knows(compiler: Sequence[str], flag: str) -> bool:
    return _ran([*compiler, flag, "-fsyntax-only", "-x", "c++", os.devnull])[0] == 0


def _link_flags() -> list[str]:
    """Without a level of optimisation: it would count for the source, too."""
    return [flag for flag in _compiled.build()["flags"]["link"] if not flag.startswith("-O")]


@cache
def _headers_of_tbb() -> Path:
    """Those of the wheel, else of the system, where the compiler finds them by itself."""
    try:
        files = metadata.files("tbb-devel") or []
    except metadata.PackageNotFoundError:
        return Path("/usr/include")
    found = next((Path(str(file.locate())) for file in files if file.name == "task_arena.h"), None)
    return found.resolve().parents[2] if found else Path("/usr/include")


def _headers() -> Path:
    """The folder of what each library is made of, beside that of the kernels."""
    return registry.kernels_folder().parent / "cpp_ext"


def _included_from() -> tuple[Path, ...]:
    """Where includes are looked for, the last for copies of the project's sources: they have `"../../formats.hpp"`."""
    kernels = registry.kernels_folder()
    return _headers(), kernels, kernels / "vecadd" / "lecture"


def _facts(file: str) -> str:
    """What tells a compiler, or a header, from another version of it: its size, and the time of its last change."""
    try:
        status = Path(file).stat()
    except OSError:  # a compiler in a container reads files that are not here
        return "not here"
    return f"{status.st_size} {status.st_mtime_ns}"
