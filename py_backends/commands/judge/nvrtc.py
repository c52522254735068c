"""Whether CUDA takes what its emulation does not: its own compiler (NVRTC) needs no GPU, and says so where it is.

It reads the source in a process of its own: `python -m py_backends.commands.judge.nvrtc FOLDER NAME...`. That gets the
source from its standard input, and what it includes from the folder. CUDA's headers for the device are no part of the
compiler: they come from where they are installed. It ends with 0 if these instances compile.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from py_backends.commands.judge.host_code import DEVICE_HEADER, with_device_headers
from py_backends.contract import KernelText, Target
from py_backends.number_formats import number_format
from py_backends.system import interpreter

_COMPILES, _DOES_NOT, _IS_NOT_THERE, _LACKS_HEADERS = 0, 1, 3, 4
_FIX = 'pip install cuda-bindings "cuda-toolkit[nvrtc,cudart,crt,cccl]"'
_WITH_HEADERS = "cudart", "nvcc", "cccl", "curand"
"""The parts of CUDA that bring headers for the device, by the names that NVIDIA's own search for them takes."""


def beyond(text: KernelText, target: Target, dtype: str, patience: float) -> str | None:
    """What a source needs that is not here, if it is in CUDA and does not compile; None if it is at fault itself."""
    if text.path.suffix != ".cu":
        return None
    header, (code, _) = _header(text), _asked(text, dtype, patience)
    if code == _COMPILES and target.emulated:
        return "it is valid CUDA, by CUDA's own compiler, and the emulation lacks something of it"
    if header and code == _COMPILES:
        return f"it includes {header}, and kernels are compiled without CUDA's headers for the device"
    if header and code in (_IS_NOT_THERE, _LACKS_HEADERS):
        return f"it includes {header}, and nobody knows whether it is valid without that: {_FIX}"
    return None


def hint(text: KernelText, target: Target, dtype: str, patience: float) -> str:
    """What to know of a source that does not compile and is at fault, or may be; empty where its error says all.

    Without CUDA's headers it has more errors than its own.
    """
    if text.path.suffix != ".cu":
        return ""
    if target.emulated and not _is_there():
        return (
            "; this is the emulation, which lacks some of CUDA: "
            f"with its own compiler, judge tells the two apart: {_FIX}"
        )
    said = _asked(text, dtype, patience)[1] if _header(text) else ""
    return f"; CUDA's own compiler says: {said}" if said else ""


def _header(text: KernelText) -> str | None:
    """The first of CUDA's headers for the device that a source includes."""
    found = DEVICE_HEADER.search(_source(text))
    return found[1] if found else None


def _source(text: KernelText) -> str:
    from py_backends.backend.cuda import with_includes

    return with_device_headers(with_includes(text))


def _asked(text: KernelText, dtype: str, patience: float) -> tuple[int, str]:
    """How this module ends for a source, and its first error."""
    kind = number_format(np.dtype(dtype)).c
    try:
        names = [f"{name}<{kind}>" for name, _ in text.stages("GPU").kernels]
    except ValueError:  # its head is wrong
        return _DOES_NOT, ""
    command = interpreter.command(__spec__.name, str(text.path.parent), *names)
    given = _source(text).encode()
    try:
        run = subprocess.run(command, input=given, timeout=patience, check=False, capture_output=True)
    except subprocess.TimeoutExpired:
        return _DOES_NOT, ""
    return run.returncode, run.stdout.decode(errors="replace").strip()


def _is_there() -> bool:
    command = interpreter.command(__spec__.name, ".")
    return subprocess.run(command, input=b"", check=False, capture_output=True).returncode != _IS_NOT_THERE


def main(folder: str, *names: str) -> int:
    """Compile what the standard input has, for the newest GPUs. Prints the first error. Returns the exit code."""
    try:
        from cuda.bindings import nvrtc

        architecture = max(nvrtc.nvrtcGetSupportedArchs()[1])
    except (ImportError, RuntimeError):  # the binding is missing, or the library that it loads
        return _IS_NOT_THERE
    source = sys.stdin.buffer.read().decode(errors="replace")
    folders = [f"-I{each}" for each in (folder, *_include_folders())]
    options = ["-std=c++17", "-default-device", f"-arch=compute_{architecture}", *folders]
    log = _log(nvrtc, source, names, options)
    if log is None:
        return _COMPILES
    # If the headers alone do not compile either, they are missing or of another version: it is no fault of the source.
    headers = "".join(f"#include {each}\n" for each in DEVICE_HEADER.findall(source))
    if _log(nvrtc, headers, (), options) is not None:
        return _LACKS_HEADERS
    sys.stdout.write(next((line for line in log.splitlines() if "error" in line), ""))
    return _DOES_NOT


def _log(nvrtc: Any, source: str, names: Sequence[str], options: Sequence[str]) -> str | None:
    """What the compiler says of a source that does not compile; None of one that does."""
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])
    for name in names:
        nvrtc.nvrtcAddNameExpression(program, name.encode())
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [each.encode() for each in options])
    if not status:
        return None
    log: bytes = b" " * nvrtc.nvrtcGetProgramLogSize(program)[1]
    nvrtc.nvrtcGetProgramLog(program, log)
    return log.decode(errors="replace").rstrip("\0")


def _include_folders() -> Iterator[str]:
    """Where CUDA's headers are: in packages of pip or conda, in CUDA_HOME or CUDA_PATH, or in the system."""
    try:
        from cuda.pathfinder import find_nvidia_header_directory
    except ImportError:  # it is of an early version
        return
    for part in _WITH_HEADERS:
        if folder := find_nvidia_header_directory(part):
            yield folder


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
