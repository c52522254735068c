"""What every extension module made of kernel texts offers; cpp_ext/kernel_module.cpp. For type checkers only."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

class Launch:
    """A kernel for one number format: a module's own, or one of a library that was compiled since.

    The latter is made of the addresses of its entry and of what runs it on threads (cpp_ext/own_part.hpp), of the
    dtypes of its arrays (inputs, then outputs), how many of them are outputs, which of its numbers are real ones, in
    order, and where its source lies. The library has to stay loaded.

    Calling it runs the kernel on `buffers` (inputs, then outputs) and `sizes` with `threads` threads, and
    returns when it has ended. It runs without the interpreter lock, and may be called by several threads
    at once. The arrays must be long enough for the sizes.

    Raises TypeError for what is not an array of the kernel's dtypes; ValueError for a number of arrays or
    sizes that the kernel does not take, an array that is not C-contiguous and aligned, an output that is
    read-only, a negative size, and less than one thread; OverflowError for a size of more
    than 64 bits; MemoryError where the kernel found no memory for its own use. Nothing is ever converted.
    """

    def __init__(
        self,
        kernel: int,
        on_threads: int,
        dtypes: Sequence[str],
        outputs: int,
        reals: Sequence[bool],
        place: str,
    ) -> None: ...
    def __call__(self, buffers: Sequence[NDArray[Any]], sizes: Sequence[float], threads: int) -> None: ...

class Kernel(Launch):
    """A module's own kernel, for one instruction set and number format, with one output and no real number."""

    @property
    def kernel(self) -> str: ...
    @property
    def variant(self) -> str: ...
    @property
    def instruction_set(self) -> str: ...
    @property
    def dtype(self) -> str:
        """Of its inputs, by NumPy's name."""
    @property
    def result_dtype(self) -> np.dtype[Any]:
        """Of its output."""
    @property
    def sha256(self) -> str:
        """SHA-256 of the text that was compiled, in hexadecimal."""
    def shortcut(
        self, shapes: Sequence[Sequence[int]], in_place: bool, threads: int, dtypes: Sequence[str]
    ) -> Callable[..., NDArray[Any] | None]:
        """A function of the kernel's inputs and its output, or None for a new one: runs it and returns the output.

        It returns None, having done nothing, unless all arrays are of NumPy's own class, of the dtypes of one number
        format that the text was compiled for and `dtypes` names, C-contiguous and aligned, of fitting shapes, and the
        output is writable and shares no byte with an input, or, where `in_place`, is one. It may be called by several
        threads at once, and runs the kernel without the interpreter lock. Raises MemoryError where the kernel found no
        memory for its own use.

        `shapes`: dimension d of array i has size number shapes[i][d]. Raises ValueError for shapes that do not fit the
        kernel, or inputs that do not tell every size, and less than one thread.
        """

def kernels() -> list[Kernel]:
    """All the module's kernels, for CPUs that this one may not be."""

def instruction_sets() -> list[tuple[str, str, bool]]:
    """The instruction sets that texts are compiled for, best first.

    Each with what is to be said where it is missing, and whether this CPU and its operating system have it.
    """
