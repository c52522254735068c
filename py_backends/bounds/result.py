"""What an array that carries its error allows a kernel to give."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from py_backends.bounds.array import Bounded, whole
from py_backends.reference import Array, Reference


def judged(x: Bounded, dtype: np.dtype[Any]) -> Reference:
    """The reference of a result in a format, which rounds once more where it has fewer digits than the arithmetic."""
    with np.errstate(all="ignore"):
        closed = x.closed()
        value = np.array(closed.value)
        error, overflow = (np.array(whole(closed, name)) for name in ("error", "overflow"))
        in_format = x.precision.rounded(value).astype(dtype).astype(np.float64)
        narrow = dtype.itemsize < x.precision.dtype.itemsize
        if narrow:
            limits = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]  # ml_dtypes
            error, overflow = _narrowed(value, error, overflow, limits)
        exact = whole(closed, "error") == 0
        if dtype.itemsize <= x.precision.dtype.itemsize:
            once = _rounded_once(x)
            exact, overflow = exact | once, overflow & ~once
        # Itself within its bound. Where that overflows, a number passes only if it is within the error all the same.
        itself = np.where(overflow & np.isinf(in_format) & x.precision.nearest, 0.0, np.abs(in_format - value))
        bound = np.where(exact, 0.0, np.maximum(error, itself))
        bound = np.where(np.isnan(bound) | (overflow & ~np.isfinite(bound)), np.inf, bound)
        bound = np.where(np.isfinite(value) | overflow, bound, 0.0)
        value = np.where(exact, in_format, value)
        if dtype != np.float64:  # whose infinite values excuse finite numbers as they are
            value = np.where(overflow & np.isinf(error) & ~np.isfinite(value), 0.0, value)  # where any number is right
    return Reference(value, bound, overflow if overflow.any() else None)


def _narrowed(value: Array, error: Array, overflow: Array, limits: Any) -> tuple[Array, Array]:
    reach = np.abs(value) + error
    error = np.where(error > 0, error + float(limits.eps) / 2 * reach + float(limits.smallest_subnormal), 0.0)
    finite = np.isfinite(value)
    return error, overflow | (finite & (error > 0) & ~(reach + error <= float(limits.max)))


def _rounded_once(x: Bounded) -> Array:
    """Where the kernel does one operation on exact numbers: IEEE 754 has one result for it.

    The value was computed in float64, which has at least two digits more than twice those of float32. So to round it
    once more gives the same number. (Figueroa, When is double rounding innocuous?, SIGNUM Newsletter 30, 1995.)
    """
    if not x.precision.nearest:
        return np.zeros(x.shape, bool)
    roundings = x.roundings + np.maximum(x.terms - 1, 0)
    flushed = x.precision.flushes & (x.roundings > 0) & (np.abs(x.value) < x.precision.normal)
    one = ~flushed & (x.error == 0) & (roundings <= 1) & (x.losses <= np.where(x.terms <= 1, 1, 0)) & ~x.overflow
    return np.broadcast_to(one, x.shape)
