"""Whether CUDA takes what its emulation does not: its own compiler (NVRTC) needs no GPU, and says so where it is.

It reads the source in a process of its own: `python -m py_backends.commands.judge.nvrtc FOLDER NAME...`. That gets the
source from its standard input, and what it includes from the folder. It ends with 0 if these instances compile.
"""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np

from py_backends.contract import KernelText, Target
from py_backends.number_formats import number_format
from py_backends.system import interpreter

_HEADER = re.compile(
    r"#[ \t]*include[ \t]*(<(?:cooperative_groups|mma\.h|cuda_pipeline|cuda/|cub/|cutlass/|cute/)[^>]*>)"
)
"""A header for the device, which is no part of the language."""
_COMPILES, _DOES_NOT, _IS_NOT_THERE = 0, 1, 3
_FIX = "pip install cuda-bindings nvidia-cuda-nvrtc"


def beyond(text: KernelText, target: Target, dtype: str, patience: float) -> str | None:
    """What a source needs that is not here, if it is in CUDA and does not compile; None if it is at fault itself."""
    if text.path.suffix != ".cu":
        return None
    if found := _HEADER.search(text.text):
        return f"it includes {found[1]}, and no header of CUDA's for the device is here"
    if target.emulated and _code(text, dtype, patience) == _COMPILES:
        return "it is valid CUDA, by CUDA's own compiler, and the emulation lacks something of it"
    return None


def hint(text: KernelText, target: Target) -> str:
    """What to do to know whether the emulation is at fault; empty where that is known."""
    if text.path.suffix != ".cu" or not target.emulated or _is_there():
        return ""
    return (
        f"; this is the emulation, which lacks some of CUDA: with its own compiler, judge tells the two apart: {_FIX}"
    )


def _code(text: KernelText, dtype: str, patience: float) -> int:
    from py_backends.backend.cuda import with_includes

    kind = number_format(np.dtype(dtype)).c
    try:
        names = [f"{name}<{kind}>" for name, _ in text.stages("GPU").kernels]
        source = with_includes(text).encode()
    except (ValueError, OSError):  # its head is wrong, or a file that it includes is missing
        return _DOES_NOT
    command = interpreter.command(__spec__.name, str(text.path.parent), *names)
    try:
        return subprocess.run(command, input=source, timeout=patience, check=False, capture_output=True).returncode
    except subprocess.TimeoutExpired:
        return _DOES_NOT


def _is_there() -> bool:
    command = interpreter.command(__spec__.name, ".")
    return subprocess.run(command, input=b"", check=False, capture_output=True).returncode != _IS_NOT_THERE


def main(folder: str, *names: str) -> int:
    """Compile what the standard input has, for the newest GPUs. Returns the exit code."""
    try:
        from cuda.bindings import nvrtc

        architecture = max(nvrtc.nvrtcGetSupportedArchs()[1])
    except (ImportError, RuntimeError):  # the binding is missing, or the library that it loads
        return _IS_NOT_THERE
    _, program = nvrtc.nvrtcCreateProgram(sys.stdin.buffer.read(), b"kernel.cu", 0, [], [])
    for name in names:
        nvrtc.nvrtcAddNameExpression(program, name.encode())
    options = [b"-std=c++17", b"-default-device", f"-arch=compute_{architecture}".encode(), f"-I{folder}".encode()]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    return _DOES_NOT if status else _COMPILES


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
