"""Kernels in Numba for GPUs, which get flat arrays: how one is cleared."""

from __future__ import annotations

from numba import cuda

SLICES = True


@cuda.jit
def clear(array, elements):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201  # Numba finds the types
    """Write a zero to the element of this thread."""
    at = cuda.grid(1)
    if at < elements:
        array[at] = 0
