"""matmul: c = a b for an m x k matrix a and a k x n matrix b, all stored by rows.

The bound on every element is that of Higham, Accuracy and Stability of Numerical Algorithms (2nd
edition, section 3.5): |c - ab| <= g |a||b| with g = (k+2) u / (1 - (k+2) u), which holds for any order
of summation, with or without fused multiply-add. u is the unit roundoff. Each of the k products and
the additions may also lose one subnormal s to underflow, hence (k+2) s on top. Where (k+2) u reaches 1,
at k of 2^24 in float32, that g is undefined, and (k+2) u itself bounds the error (Jeannerod and Rump,
Improved error bounds for inner products in floating-point arithmetic, SIAM J. Matrix Anal. Appl. 34, 2013).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from py_backends.contract import Array, Ladder, Problem, Reference, Rung

LADDER = Ladder(
    rungs=(
        Rung("python", "lecture", "plain loops", 1, 0.00),
        Rung("cpp", "lecture", "translated", 47, 0.03),
        Rung("openmp", "lecture", "parallel loops", 366, 0.24),
        # As published, 6,727 is without vector instructions; those of the compiler bring it to 23,224.
        Rung("openmp", "tuned", "memory, vectors", 6727, 4.33),
        Rung("avx", "tuned", "intrinsics", 62_806, 40.45),
        Rung("cuda", "tuned", "GPU"),
    ),
    # A matrix of 5 MB is more than the caches of a core hold, and the plain loops still take less than a second.
    sizes=(800, 800, 800),
    source="Leiserson et al., Science 368 (2020), eaam9744, table 1: n = 4096 in float64 on 18 cores",
)


class MatrixMultiplication(Problem):
    name = "matmul"
    signature = "(m,k),(k,n)->(m,n)"
    rule = "componentwise"
    rate = "gflops"
    in_place = False
    default_sizes = (521, 509, 499)  # primes, all different: edges and swapped sizes show
    ladder = LADDER

    def reference(self, inputs: Sequence[Array]) -> Reference:
        a, b = inputs
        k = a.shape[1]
        precision = np.finfo(a.dtype)
        unit_roundoff = float(precision.eps) / 2
        relative = (k + 2) * unit_roundoff
        g = relative / (1 - relative) if relative < 1 else relative
        with np.errstate(over="ignore", invalid="ignore"):
            a64, b64 = a.astype(np.float64), b.astype(np.float64)
            value = a64 @ b64
            magnitude = np.abs(a64) @ np.abs(b64)
            # A float64 result is judged by a float64 reference, whose own error is as large.
            own_error = 2 if a.dtype == np.float64 else 1
            bound = own_error * g * magnitude + (k + 2) * float(precision.smallest_subnormal)
            finite = np.isfinite(a).all(axis=1, keepdims=True) & np.isfinite(b).all(axis=0, keepdims=True)
            overflow = finite & ~((1 + g) * magnitude <= float(precision.max))
        return Reference(value, bound, overflow)

    def flops(self, sizes: Sequence[int]) -> int:
        m, n, k = sizes
        return 2 * m * n * k


PROBLEM = MatrixMultiplication()
