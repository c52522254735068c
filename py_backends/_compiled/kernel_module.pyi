"""What every extension module made of kernel texts offers; cpp_ext/kernel_module.cpp. For type checkers only."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

class Kernel:
    """A compiled kernel for one instruction set and dtype.

    Calling it runs the kernel on `buffers` (inputs, then output) and `sizes` with `threads` threads, and
    returns when it has ended. It runs without the interpreter lock, and may be called by several threads
    at once. The arrays must be long enough for the sizes.

    Raises TypeError for what is not an array of the kernel's dtype; ValueError for a number of arrays or
    sizes that the kernel does not take, an array that is not C-contiguous and aligned, an output that is
    read-only, a negative size, and less than one thread; OverflowError for a size of more
    than 64 bits; MemoryError where the kernel found no memory for its own use. Nothing is ever converted.
    """

    @property
    def kernel(self) -> str: ...
    @property
    def variant(self) -> str: ...
    @property
    def instruction_set(self) -> str: ...
    @property
    def dtype(self) -> str:
        """`float32` or `float64`."""
    @property
    def sha256(self) -> str:
        """SHA-256 of the text that was compiled, in hexadecimal."""
    def __call__(self, buffers: Sequence[NDArray[Any]], sizes: Sequence[int], threads: int) -> None: ...

def kernels() -> list[Kernel]:
    """All the module's kernels, for CPUs that this one may not be."""

def instruction_sets() -> list[tuple[str, str, bool]]:
    """The instruction sets that texts are compiled for, best first.

    Each with what it needs of a CPU, in words, and whether this CPU and its operating system have that.
    """
