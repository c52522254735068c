"""vecadd: c[i] = a[i] + b[i] for vectors of n elements.

Every element is one IEEE 754 addition, which is correctly rounded: there is one right answer, and every bit of it is
checked. In the 16-bit formats it is the sum in float32, rounded once more. The first rounding changes nothing, since 24
bits are at least 2 x 11 + 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from py_backends.contract import Array, Ladder, Problem, Reference, Rung

_BEYOND_CACHES = 16_000_057
"""Elements, more than the caches of most machines hold: on the edge of a cache, a time depends on who else uses it. A
prime, so that every vector width and work-group size leaves a ragged end."""

STEPS_ON_CPU = Ladder(
    rungs=(
        Rung("cpp", "lecture", "one loop"),
        Rung("openmp", "lecture", "threads"),
        Rung("avx", "streaming_stores", "stores past the cache"),
        Rung("avx", "tuned", "several lines at once"),
    ),
    sizes=(_BEYOND_CACHES,),
    name="CPU",
)


class VectorAddition(Problem):
    name = "vecadd"
    signature = "(n),(n)->(n)"
    by_default = True
    rule = "bitwise"
    rate = "gbytes_per_second"
    dtypes = ("float32", "float64", "float16", "bfloat16")
    sums = MappingProxyType({"float16": "float32", "bfloat16": "float32"})
    in_place = True
    steps = (STEPS_ON_CPU,)
    in_numpy = "np.add(a, b, out=c)"
    default_sizes = (_BEYOND_CACHES,)

    def reference(self, inputs: Sequence[Array]) -> Reference:
        a, b = inputs
        with np.errstate(over="ignore", invalid="ignore"):
            return Reference(a + b)

    def flops(self, sizes: Sequence[int]) -> int:
        (n,) = sizes
        return n

    def least_communication(self, sizes: Sequence[int], dtype: np.dtype[Any], ranks: int) -> float:
        return 0.0


PROBLEM = VectorAddition()
