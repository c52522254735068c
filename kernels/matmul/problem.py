"""matmul: c = a b for an m x k matrix a and a k x n matrix b, all stored by rows.

The bound on every element is that of Higham, Accuracy and Stability of Numerical Algorithms (2nd
edition, section 3.5): |c - ab| <= g |a||b| with g = (k+2) u / (1 - (k+2) u), which holds for any order
of summation, with or without fused multiply-add. u is the unit roundoff. Each of the k products and
the additions may also lose one subnormal s to underflow, hence (k+2) s on top. Where (k+2) u reaches 1,
at k of 2^24 in float32, that g is undefined, and (k+2) u itself bounds the error (Jeannerod and Rump,
Improved error bounds for inner products in floating-point arithmetic, SIAM J. Matrix Anal. Appl. 34, 2013).

The 16-bit formats are multiplied exactly and summed in float32, so that u is float32's. Matrix units may cut
sums off instead of rounding them, which costs up to twice as much: u is doubled (Blanchard, Higham, Lopez,
Mary and Pranesh, Mixed precision block fused multiply-add, SIAM J. Sci. Comput. 42, 2020; Fasi, Higham,
Mikaitis and Pranesh, Numerical behavior of NVIDIA tensor cores, PeerJ Comput. Sci. 7:e330, 2021). No sum of
float16 underflows: all of its products are multiples of 2^-48. With bfloat16 matrix units take subnormal
inputs for zero, which loses their products, and leave no subnormal result: float32's smallest normal number
stands for s. Sums of int8 are exact, modulo 2^32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

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
    formats=(
        Rung("avx", "tuned", "fewer bits", dtype="bfloat16"),
        Rung("avx", "tuned", "matrix unit", dtype="bfloat16", target="amx"),
    ),
)

STEPS_ON_CPU = Ladder(
    rungs=(
        Rung("cpp", "lecture", "three loops"),
        Rung("cpp", "vectors", "vectors"),
        Rung("cpp", "loops_reordered", "loops reordered"),
        Rung("openmp", "threads", "threads"),
        Rung("openmp", "register_tile", "register tile"),
        Rung("openmp", "cache_blocks", "cache blocks"),
        Rung("openmp", "packing", "packing"),
        Rung("openmp", "tuned", "shares, taller tiles"),
    ),
    # Rows a power of two apart take places from each other in the caches, which is what blocks and packing are for.
    sizes=(1024, 1024, 1024),
    name="CPU",
)

STEPS_ON_GPU = Ladder(
    rungs=(
        Rung("cuda", "strided_reads", "strided reads"),
        Rung("cuda", "lecture", "coalesced reads"),
        Rung("cuda", "shared_tiles", "tiles in shared memory"),
        Rung("cuda", "several_sums", "several sums a thread"),
        Rung("cuda", "register_tiles", "register tiles"),
        Rung("cuda", "staged_copies", "copies in stages"),
        Rung("cuda", "vector_reads", "reads of 16 bytes"),
        Rung("cuda", "to_and_fro", "products to and fro"),
        Rung("cuda", "kept_addresses", "kept addresses"),
        Rung("cuda", "larger_tiles", "larger tiles"),
        Rung("cuda", "vector_copies", "copies of 16 bytes"),
        Rung("cuda", "two_tile_sizes", "two tile sizes"),
        Rung("cuda", "tiles_in_bands", "tiles in bands"),
        Rung("cuda", "reads_ahead", "reads ahead"),
        Rung("cuda", "tuned", "tensor cores"),
    ),
    # Blocks for every multiprocessor of a large GPU, and strided reads still take less than a second.
    sizes=(2048, 2048, 2048),
    name="GPU",
)


class MatrixMultiplication(Problem):
    name = "matmul"
    signature = "(m,k),(k,n)->(m,n)"
    by_default = True
    rule = "componentwise"
    rate = "gflops"
    dtypes = ("float32", "float64", "float16", "bfloat16", "int8")
    results = Problem.sums
    in_place = False
    in_numpy = "np.matmul(a, b, out=c)"
    default_sizes = (521, 509, 499)  # primes, all different: edges and swapped sizes show
    ladder = LADDER
    steps = (STEPS_ON_CPU, STEPS_ON_GPU)

    def reference(self, inputs: Sequence[Array]) -> Reference:
        a, b = inputs
        if a.dtype == np.int8:
            return _of_integers(a, b)
        k = a.shape[1]
        precision = np.finfo(self.result_dtype(a.dtype))
        narrow = a.dtype.itemsize == 2
        relative = (k + 2) * float(precision.eps) / (1 if narrow else 2)
        g = relative / (1 - relative) if relative < 1 else relative
        with np.errstate(over="ignore", invalid="ignore"):
            a64, b64 = a.astype(np.float64), b.astype(np.float64)
            value = a64 @ b64
            magnitude = np.abs(a64) @ np.abs(b64)
            # A float64 result is judged by a float64 reference, whose own error is as large.
            own_error = 2 if a.dtype == np.float64 else 1
            bound = own_error * g * magnitude
            if a.dtype.name == "bfloat16":
                normal = float(precision.smallest_normal)  # bfloat16 has the exponents of float32
                bound += _of_subnormals(a64, b64, normal) + (k + 2) * normal
            elif not narrow:
                bound += (k + 2) * float(precision.smallest_subnormal)
            # Where finite terms overflow, the order of summation decides whether an infinite one meets its opposite.
            numbers = ~(np.isnan(a64).any(axis=1, keepdims=True) | np.isnan(b64).any(axis=0, keepdims=True))
            finite = magnitude if np.isfinite(magnitude).all() else np.abs(_finite(a64)) @ np.abs(_finite(b64))
            overflow = numbers & ~((1 + g) * finite <= float(precision.max))
        return Reference(value, bound, overflow)

    def flops(self, sizes: Sequence[int]) -> int:
        m, n, k = sizes
        return 2 * m * n * k

    def least_communication(self, sizes: Sequence[int], dtype: np.dtype[Any], ranks: int) -> float:
        """Of a, b and c a rank needs parts of so many bytes that their product is large enough, and has some already.

        Al Daas, Ballard, Grigori, Kumar and Rouse, Tight memory-independent parallel matrix multiplication
        communication lower bounds, SPAA 2022, theorem 3, for elements of one size; here each array has its own.
        """
        m, n, k = sizes
        of_result = self.result_dtype(dtype).itemsize
        whole = [m * k * dtype.itemsize, k * n * dtype.itemsize, m * n * of_result]
        owned = [size / ranks for size in whole]
        return sum(_smallest_parts(owned, math.prod(owned) * ranks)) - sum(owned)


def _smallest_parts(least: Sequence[float], product: float) -> list[float]:
    """Numbers with the smallest sum, none below its `least`, whose product is so large."""
    kept: list[float] = []
    for largest, others in zip(sorted(least, reverse=True), (3, 2, 1), strict=True):
        equal = (product / math.prod(kept)) ** (1 / others) if product else 0.0
        if equal >= largest:  # of those that are left, which are raised to be as large as one another
            return kept + [equal] * others
        kept.append(largest)
    return kept


def _of_integers(a: Array, b: Array) -> Reference:
    # Products of float64 are exact here, and quicker than those of integers; as are sums of less than 2^39 of them.
    exact = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int64)
    value = exact.astype(np.int32).astype(np.float64)
    return Reference(value, np.zeros_like(value))


def _of_subnormals(a: Array, b: Array, normal: float) -> Array:
    """What products with an element below the smallest normal number add up to."""
    small_a, small_b = (np.where(np.abs(x) < normal, np.abs(x), 0.0) for x in (a, b))
    return np.asarray(small_a @ np.abs(b) + np.abs(a) @ small_b)


def _finite(x: Array) -> Array:
    """The elements, and 0 in place of those that are infinite or no number."""
    return np.where(np.isfinite(x), x, 0.0)


PROBLEM = MatrixMultiplication()
