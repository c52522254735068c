"""Kernels in Triton: how an array is cleared."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def clear(array, elements):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201  # the compiler would look for names
    """Write zeros to the elements of this program."""
    at = tl.program_id(0).to(tl.int64) * 256 + tl.arange(0, 256)
    tl.store(array + at, tl.zeros([256], array.dtype.element_ty), at < elements)
