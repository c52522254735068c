"""transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.

Elements are moved, not computed: there is one right answer, and every bit of it is checked. Only of a NaN the bits do
not count: where plain Python takes it from a list, they may change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from py_backends.contract import Array, Ladder, Problem, Reference, Rung

STEPS_ON_CPU = Ladder(
    rungs=(
        Rung("cpp", "lecture", "two loops"),
        Rung("cpp", "cache_blocks", "blocks for the caches"),
        Rung("openmp", "threads", "threads"),
        Rung("avx", "register_tiles", "tiles in registers"),
        Rung("avx", "tuned", "whole lines past the cache"),
    ),
    # Elements of a column are a power of two apart, so that they take places from each other in the caches.
    sizes=(4096, 4096),
    name="CPU",
)

STEPS_ON_GPU = Ladder(
    rungs=(
        Rung("cuda", "lecture", "an element a thread"),
        Rung("cuda", "blocks", "several elements a thread"),
        Rung("cuda", "shared_tiles", "tiles in shared memory"),
        Rung("cuda", "padded_tiles", "padding, whole cache lines"),
        Rung("cuda", "tuned", "words of narrow elements"),
    ),
    # Large enough for the memory of a large GPU, and its caches hold neither matrix.
    sizes=(8192, 8192),
    name="GPU",
)


class Transposition(Problem):
    name = "transpose"
    signature = "(n,m)->(m,n)"
    rule = "bitwise"
    rate = "gbytes_per_second"
    dtypes = ("float32", "float64", "float16", "bfloat16", "int8")
    in_place = False
    in_numpy = "np.copyto(b, a.T)"
    default_sizes = (1999, 1511)  # primes: every tile leaves a ragged end, and swapped sizes show
    # Around the sides of squares and blocks, then a single column and a single row.
    edges = ((257, 129), (63, 191), (130, 1), (1, 130))
    steps = (STEPS_ON_CPU, STEPS_ON_GPU)

    def reference(self, inputs: Sequence[Array]) -> Reference:
        (a,) = inputs
        return Reference(a.T.copy())

    def flops(self, sizes: Sequence[int]) -> int:
        return 0

    def work(self, sizes: Sequence[int]) -> int:
        m, n = sizes
        return max(1, m * n)

    def least_communication(self, sizes: Sequence[int], dtype: np.dtype[Any], ranks: int) -> float:
        """None: a rank may hold those rows of c that are its columns of a. Other layouts need messages."""
        return 0.0


PROBLEM = Transposition()
