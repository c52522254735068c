"""Whole numbers that need all digits of their format, at the timed shape.

The bound of a sum grows with its length. So inputs of a lower precision may lie within it where sums are long, and the
suite has such numbers where they are short. Here all terms but one of each sum are 0, so that nothing else rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from py_backends.conformance.formats import limits
from py_backends.conformance.trials import Inputs, Shapes, Trial, named, of_kernel
from py_backends.contract import Problem
from py_backends.results.spec import Sizes

_PRECISION = "precision"
"""The kind of a kernel's own trials that says whether such sums are exact in any order."""


def trials(problem: Problem, sizes: Sizes, seed: int) -> Iterator[Trial]:
    """A trial for each input, which has all digits. The others are -1 and 1 on a diagonal, in any order, and else 0.

    There are none where every bit of any result counts.
    """
    if problem.rule == "bitwise":
        return
    own = (kind for kind in of_kernel(problem.name).kinds if kind.name == _PRECISION)
    exact = any(trial.exact for kind in own for trial in kind.cases(problem))
    for at, name in enumerate(problem.inputs):
        if problem.own_dtype(at) is None:
            called = f"{named(sizes)}, all digits in {name}, seed {seed}"
            yield Trial(called, sizes, partial(_all_digits, at), exact=exact)


def _all_digits(which: int, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    quarter = 2 ** (limits(dtype).digits - 2)
    inputs = [np.zeros(shape, dtype) for shape in shapes]
    for at, array in enumerate(inputs):
        if at == which:
            array[...] = (2 * generator.integers(quarter, 2 * quarter, array.shape) + 1).astype(dtype)
        else:
            count = min(array.shape, default=1)
            places = tuple(generator.permutation(length)[:count] for length in array.shape)
            array[places] = generator.choice([-1, 1], count if places else ()).astype(dtype)
    return inputs
