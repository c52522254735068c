"""nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.

It is the acceleration that n bodies give m points, with the constant of gravity 1. With bodies of a small extent
instead of points (e), it stays finite where a body meets a point. `at` is m x 3, `position` n x 3, c m x 3, all stored
by rows. A body gives itself nothing, since its d is 0: `nbody(x, x, mass)` is for bodies among themselves. (Nyland,
Harris and Prins, Fast N-body simulation with CUDA, GPU Gems 3, 2007, chapter 31. They count 20 operations for each
pair.)

What is right: u is the unit roundoff and s the smallest subnormal of the format. The difference d is exact but for one
rounding. d.d + e is a sum of positive terms, so that it has a relative error of at most 6u. Its reciprocal square root
within 2 ulp has 3u + 4u, and the third power of that 23u with two multiplications. With mass and d that makes 26u of a
term. Rounding errors of the sum add up to at most n u of the sum of terms' sizes, and most probably to 6 sqrt(n) u of
it (Higham and Mary, A new approach to probabilistic rounding error analysis, SIAM J. Sci. Comput. 41, 2019):

    |error| <= (26 + min(n, 6 sqrt(n))) u sum|terms|

Where d.d or (d.d + e)^(3/2) or its reciprocal leaves the format's normal range, the term may be lost, and its size is
added to the bound. What a product loses to underflow is at most s times the factors that come after. Where finite
inputs are so large that a difference, a product of some of the factors or a sum of terms may overflow, infinity and NaN
pass. So they do where an infinite mass is that of a term that may be lost. The reference errs as much in float64, where
the bound is doubled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from py_backends.contract import Array, Ladder, Problem, Reference, Rung

SOFTENING = 2.0**-10
"""e: the square of a length, which keeps the force finite where a body meets a point."""
_PAIRS = 2**16
"""Pairs of which the reference has all terms at a time: these stay in the cache."""

STEPS_ON_CPU = Ladder(
    rungs=(
        Rung("cpp", "lecture", "two loops"),
        Rung("avx", "lecture", "vectors of points"),
        Rung("avx", "reciprocal_root", "an approximate reciprocal root"),
        Rung("avx", "tuned", "threads, several vectors"),
    ),
    sizes=(8192, 8192),
    name="CPU",
)

STEPS_ON_GPU = Ladder(
    rungs=(
        Rung("cuda", "lecture", "a point a thread"),
        Rung("cuda", "shared_tiles", "tiles of bodies in shared memory"),
        Rung("cuda", "tuned", "several points a thread"),
    ),
    sizes=(65536, 65536),
    name="GPU",
)


class NBody(Problem):
    name = "nbody"
    signature = "(m,3),(n,3),(n)->(m,3)"
    inputs = ("at", "position", "mass")
    rule = "componentwise"
    rate = "gflops"
    in_place = False
    default_sizes = (1021, 1511)  # primes: every vector width and tile leaves a ragged end, and swapped sizes show
    # No body, one, then around the sides of vectors and tiles.
    edges = ((3, 0), (1, 1), (17, 2), (2, 17), (33, 257), (257, 33))
    steps = (STEPS_ON_CPU, STEPS_ON_GPU)

    @np.errstate(all="ignore")
    def reference(self, inputs: Sequence[Array]) -> Reference:
        at, position, mass = (each.astype(np.float64) for each in inputs)
        (m, _), n = at.shape, len(mass)
        limits = np.finfo(inputs[0].dtype)
        value, bound, overflow = np.zeros((m, 3)), np.zeros((m, 3)), np.zeros((m, 3), bool)
        rows = max(1, _PAIRS // max(1, n))
        for first in range(0, m, rows):
            some = slice(first, first + rows)
            value[some], bound[some], overflow[some] = _summed(at[some], position, mass, limits)
        return Reference(value, (2 if inputs[0].dtype == np.float64 else 1) * bound, overflow)

    def flops(self, sizes: Sequence[int]) -> int:
        """20 for each pair, by convention: a root and a division count as some of them."""
        m, n = sizes
        return 20 * m * n

    def least_communication(self, sizes: Sequence[int], dtype: np.dtype[Any], ranks: int) -> float:
        """A rank needs every body for any point: it receives position and mass of all that it does not hold."""
        m, n = sizes
        return 4.0 * (n - math.ceil(n / ranks)) * dtype.itemsize if m else 0.0


def _summed(at: Array, position: Array, mass: Array, limits: np.finfo[Any]) -> tuple[Array, Array, Array]:
    """The sums for some points, their bounds, and where they may overflow."""
    n = len(mass)
    unit_roundoff, least, normal, largest = (
        float(each) for each in (limits.eps / 2, limits.smallest_subnormal, limits.tiny, limits.max)
    )
    d = position[None] - at[:, None]
    size = np.abs(d)
    square = (d * d).sum(axis=2) + SOFTENING
    root = np.sqrt(square)
    cube = square * root
    terms = (mass / square / root)[..., None] * d  # the cube may overflow where they do not
    lost = (square > largest) | (cube > largest) | (1 / cube < normal)
    relative = (26 + min(n, 6 * math.sqrt(n))) * unit_roundoff
    rounded = relative * np.abs(terms).sum(axis=1)
    underflown = (least * (1 + size) + least * np.abs(mass)[None, :, None]).sum(axis=1)
    bound = rounded + underflown + np.where(lost[..., None], np.abs(terms), 0).sum(axis=1)
    finite = np.isfinite(position)[None] & np.isfinite(at)[:, None] & np.isfinite(mass)[None, :, None]
    factors = np.abs(mass)[None, :, None] * np.maximum(1, size) * np.maximum(1, 1 / cube)[..., None]
    may_overflow = finite & ((factors > largest / 2) | (size > largest)) | (lost & np.isinf(mass))[..., None]
    sums_overflow = (1 + relative) * np.where(finite, np.abs(terms), 0).sum(axis=1) > largest
    return terms.sum(axis=1), bound, may_overflow.any(axis=1) | sums_overflow


PROBLEM = NBody()
