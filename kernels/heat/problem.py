"""heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.

It is the explicit difference scheme of the heat equation in two dimensions, with dt / dx^2 = 1/8 (LeVeque, Finite
Difference Methods for Ordinary and Partial Differential Equations, SIAM 2007, sections 9.1 and 9.7). Each step makes of
an interior element half of itself and an eighth of each of its four neighbours. Elements of the first and last row and
column are the boundary: u holds them for all steps. After 0 steps, c is a copy of u. So it is where u has fewer than 3
rows or columns.

What is right: S is the exact step, u the unit roundoff and s the smallest subnormal of the format. A computed step adds
four neighbours and half of the element, in any order, fused or not: no term passes through more than 4 operations that
round. Multiplications by powers of two are exact, but where they leave subnormals, and additions of subnormals are
exact. So a step errs by at most g S|v| + 3 s for its own input v, with g = 4u / (1 - 4u) (Higham, Accuracy and
Stability of Numerical Algorithms, 2nd edition, lemma 3.1). S is linear, and its weights are positive. Hence an error e
of the input becomes at most S e, and with v = u + e, |v| <= |u| + e:

    e' = (1 + g) S e + g S|u| + 3 s

It starts at 0, and the reference computes it beside the steps. The reference errs as much in float64, where the bound
is doubled.

Where u has whole numbers of at most 2^24 / 8^steps (2^53 in float64), all partial sums in any order are multiples of
1 / 8^steps that fit into the format's digits: nothing rounds, and the bound is 0.

Four neighbours may overflow before they are divided by 8. Where finite ones may, infinity and NaN pass. What has become
infinite spreads to neighbours in later steps. What u has of infinity and NaN spreads as it does in the reference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from py_backends.contract import Array, Ladder, Problem, Reference, Rung

STEPS_ON_CPU = Ladder(
    rungs=(
        Rung("cpp", "lecture", "step by step"),
        Rung("openmp", "lecture", "threads"),
        Rung("openmp", "rows_in_cache", "several steps while rows are in the cache"),
        Rung("openmp", "tuned", "parts for the caches"),
        Rung("avx", "tuned", "vector registers"),
    ),
    sizes=(4096, 4096, 64),
    name="CPU",
)

STEPS_ON_GPU = Ladder(
    rungs=(
        Rung("cuda", "lecture", "a launch a step"),
        Rung("cuda", "shared_tiles", "tiles in shared memory"),
        Rung("cuda", "tuned", "several steps a launch"),
    ),
    # Large enough for the memory of a large GPU, and its caches hold neither matrix.
    sizes=(8192, 8192, 64),
    name="GPU",
)


class Heat(Problem):
    name = "heat"
    signature = "(m,n)->(m,n)"
    inputs = ("u",)
    numbers = {"steps": 1}
    rule = "componentwise"
    rate = "gflops"
    in_place = False
    default_sizes = (1021, 769, 16)  # primes: every vector width and tile leaves a ragged end
    # No interior, one element of it, then around the sides of tiles.
    edges = ((1, 5, 3), (2, 9, 2), (3, 3, 4), (130, 67, 9), (35, 261, 17))
    steps = (STEPS_ON_CPU, STEPS_ON_GPU)

    @np.errstate(all="ignore")
    def reference(self, inputs: Sequence[Array], steps: int) -> Reference:  # type: ignore[override]  # its own number
        (given,) = inputs
        double = given.dtype == np.float64
        limits = np.finfo(given.dtype)
        largest, least = float(limits.max), float(limits.smallest_subnormal)
        g = 2 * float(limits.eps) / (1 - 2 * float(limits.eps))  # eps is 2u
        u = given.astype(np.float64)
        exact = _exact(u, steps, 2.0 ** (limits.nmant + 1))
        error, infinite = np.zeros(u.shape), np.zeros(u.shape)
        for _ in range(steps):
            size = np.abs(u)
            most = np.where(np.isfinite(size), size + error, 0)
            infinite = _step(infinite) + ((1 + g) * _sum_of_neighbours(most) > largest)
            error = (1 + g) * _step(error) + _inside(g * _step(size) + 3 * least)
            u = _step(u)
        bound = np.zeros(u.shape) if exact else (2 if double else 1) * error
        return Reference(u, bound, infinite > 0)

    def flops(self, sizes: Sequence[int]) -> int:
        """Additions of four neighbours and of the element, and two multiplications, for each interior element."""
        m, n, steps = sizes
        return 6 * max(0, m - 2) * max(0, n - 2) * steps

    def work(self, sizes: Sequence[int]) -> int:
        """Elements that are written, the copy after 0 steps included."""
        m, n, steps = sizes
        return max(1, m * n * max(1, steps))

    def least_communication(self, sizes: Sequence[int], dtype: np.dtype[Any], ranks: int) -> float:
        """What some rank needs of u beyond what it holds, even for one step.

        A rank computes A = (m-2)(n-2) / ranks elements of the interior, and reads those, their neighbours in the
        boundary, and their neighbours in the interior, at least b of them. Each element of the boundary but the corners
        is a neighbour of one element. So all ranks together read m n - 4 + ranks b elements. They hold m n.

        For b: of each row and column that a rank's elements meet and do not fill, one more is a neighbour. If they fill
        neither a row nor a column, they meet at least sqrt(A) of one kind. If they fill some of one kind alone, they
        meet all of the other. If they fill some of both, they meet all, and fill at most a half of each kind, since
        they are at most a half of all elements.
        """
        m, n, steps = sizes
        rows, columns = m - 2, n - 2
        if ranks < 2 or steps == 0 or min(rows, columns) < 1:
            return 0.0
        own = rows * columns / ranks
        neighbours = min(math.sqrt(own), rows, columns, max(rows, columns) / 2)
        return max(0.0, neighbours - 4 / ranks) * dtype.itemsize


def _exact(u: Array, steps: int, limit: float) -> bool:
    """Whether no partial sum of any step rounds, in a format whose whole numbers are exact up to a limit."""
    most = float(np.abs(u).max(initial=0.0))
    return most * 8.0 ** min(steps, 300) <= limit and bool((np.rint(u) == u).all())


def _sum_of_neighbours(u: Array) -> Array:
    """Of each interior element; 0 on the boundary."""
    sums = np.zeros(u.shape)
    sums[1:-1, 1:-1] = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    return sums


def _step(u: Array) -> Array:
    """One step; the boundary stays."""
    after = u.copy()
    after[1:-1, 1:-1] = u[1:-1, 1:-1] / 2 + _sum_of_neighbours(u)[1:-1, 1:-1] / 8
    return after


def _inside(u: Array) -> Array:
    """The interior, and zeros on the boundary, which no step changes."""
    inside = np.zeros(u.shape)
    inside[1:-1, 1:-1] = u[1:-1, 1:-1]
    return inside


PROBLEM = Heat()
