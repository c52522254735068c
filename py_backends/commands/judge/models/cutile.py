"""Kernels in cuTile, whose arrays have shapes: how one is cleared."""

from __future__ import annotations

import cuda.tile as ct


def clear(array, _):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201  # the compiler would look for names
    """Write zeros to the elements of this block. What lies outside of the array is left out."""
    at = ct.astype(ct.bid(0), ct.int64) * 256 + ct.arange(256, dtype=ct.int64)
    zeros = ct.full((256,), 0, array.dtype)
    if array.ndim == 1:
        ct.scatter(array, (at,), zeros)
    elif array.ndim == 2:
        ct.scatter(array, (at // array.shape[1], at % array.shape[1]), zeros)
    else:
        row = at // array.shape[2]
        ct.scatter(array, (row // array.shape[1], row % array.shape[1], at % array.shape[2]), zeros)
