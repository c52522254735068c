"""What rounding does in the arithmetic of a kernel: its format's numbers, and how many roundings add up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np

from py_backends.reference import Array

ROUNDOFF = 2.0**-53
"""Of float64, in which NumPy computes the reference."""


@dataclass(frozen=True)
class Precision:
    """Of the arithmetic of a kernel.

    dtype: its format: that of the inputs, or of sums of these.
    roundoff: the largest relative error of one operation. Sums of 16-bit formats may be those of matrix units, which
        cut off where others round. That costs twice as much. (Fasi, Higham, Mikaitis and Pranesh, Numerical behavior of
        NVIDIA tensor cores, PeerJ Comput. Sci. 7:e330, 2021.)
    least: the most that an operation loses to underflow.
    normal: the smallest normal number; an exponential below it may count as zero.
    largest: beyond it sums overflow.
    whole: up to which whole numbers are exact.
    flushes: whether matrix units take subnormal numbers for zero: those for bfloat16 do.
    nearest: whether one operation gives the number of the format that is nearest to its exact result.
    probable: whether errors of sums are taken to be independent, with the mean zero.
    of_storage: the relative and the absolute error of a number that is stored in the format of the inputs, where that
        has fewer digits.
    ulps: errors of functions, by NumPy's names, in place of the usual ones.
    """

    dtype: np.dtype[Any]
    roundoff: float
    least: float
    normal: float
    largest: float
    whole: float
    flushes: bool = False
    nearest: bool = True
    probable: bool = False
    of_storage: tuple[float, float] | None = None
    ulps: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def of(cls, inputs: np.dtype[Any], sums: np.dtype[Any], **options: Any) -> Precision:
        """Of a kernel by the dtype of its inputs and that of its arithmetic."""
        limits = ml_dtypes.finfo(sums)  # type: ignore[no-untyped-call]  # ml_dtypes
        flushes = inputs.name == "bfloat16" != sums.name
        normal = float(limits.smallest_normal)
        digits = float(limits.eps)
        double = sums == np.float64
        of_inputs = ml_dtypes.finfo(inputs)  # type: ignore[no-untyped-call]  # ml_dtypes
        storage = float(of_inputs.eps) / 2, float(of_inputs.smallest_subnormal) / 2
        return cls(
            dtype=sums,
            roundoff=digits if inputs.itemsize < sums.itemsize and inputs.itemsize == 2 else digits / 2,
            least=normal if flushes else float(limits.smallest_subnormal),
            normal=normal,
            largest=float(limits.max),
            whole=2 / digits - (1 if double else 0),  # float64 may round 2^53 + 1 to 2^53, which then looks exact
            flushes=flushes,
            of_storage=storage if inputs.itemsize < sums.itemsize else None,
            **options,
        )

    def gamma(self, roundings: Array) -> Array:
        """The relative error of a number that was rounded so often, by the kernel and by the reference: both together.

        No product of k factors 1 + d is further from 1 than (1 + u)^k - 1, for any k. (Higham, Accuracy and Stability
        of Numerical Algorithms, 2nd edition, section 3.1, where k u / (1 - k u) bounds that.)
        """
        k = np.maximum(roundings, 0.0)
        return np.asarray(np.expm1(k * np.log1p(self.roundoff)) + np.expm1(k * np.log1p(ROUNDOFF)))

    def additions(self, terms: Array) -> Array:
        """Roundings that a term of a sum passes through, in the worst order; or most probably.

        The latter are 6 sqrt(n): Higham and Mary, A new approach to probabilistic rounding error analysis, SIAM J. Sci.
        Comput. 41, 2019, theorem 3.1.
        """
        most = np.maximum(terms - 1, 0.0)
        return np.asarray(np.minimum(most, 6 * np.sqrt(terms)) if self.probable else most)

    def rounded(self, values: Array) -> Array:
        """Values as numbers of the format, in float64."""
        return values.astype(self.dtype).astype(np.float64)


def written_exactly(values: Array) -> Array:
    """Which constants have so few digits that they are what the kernel has too.

    A constant with more was rounded by NumPy, and may be another number in the kernel: 0.1, or 1 / sqrt(d).
    """
    with np.errstate(all="ignore"):
        return np.asarray((values.astype(np.float32) == values) | ~np.isfinite(values))


def common_step(values: Array) -> float:
    """A power of two of which all finite elements are multiples, the largest one up to `LARGEST_STEP`."""
    values = values[np.isfinite(values) & (values != 0)]
    digits, exponents = np.frexp(values)
    whole = np.ldexp(digits, 53).astype(np.int64)
    return float(np.ldexp((whole & -whole).astype(np.float64), exponents - 53).min(initial=LARGEST_STEP))


def product_of_steps(least: float, *steps: float) -> float:
    """A step of the products; 0 where that of a factor is unknown, or where a product of some may have underflowed.

    least: the smallest number of the format. What a product lost to it, no later factor brings back.
    """
    product = smallest = 1.0
    for step in steps:
        product, smallest = min(product * step, LARGEST_STEP), smallest * min(step, 1.0)
    return product if smallest >= least else 0.0


LARGEST_STEP = 2.0**200
"""So that no product of two of them overflows. It is also that of arrays of zeros."""
