"""Numbers that need all digits of their format, at the shape that was asked for.

The bound of a sum grows with its length. So inputs of a lower precision may lie within it where sums are long, and the
suite has such numbers where they are short. Here all terms but one of each sum are 0, so that nothing else rounds.
Those of the suite are whole numbers, by which a source could know them. These are parts of 1, by lot.
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
_MOST_HALVINGS = 8
"""Of numbers of one digit. With those of all digits beside them, their products are in the range of every format."""


def trials(problem: Problem, sizes: Sizes, seed: int) -> Iterator[Trial]:
    """A trial for each input, which has all digits. The others have equal numbers on a diagonal, in any order, else 0.

    Their signs differ. All numbers are divided by a power of two, and so is none of them whole but 0, unless all are
    in the format. Those of all digits lie between an eighth and 2, so that no exponential of them vanishes. Some
    devices take subnormal results for zero, whatever the source. There are none where every bit of any result counts.
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
    digits = limits(dtype).digits
    quarter = 2 ** (digits - 2)
    inputs = [np.zeros(shape, dtype) for shape in shapes]
    for at, array in enumerate(inputs):
        if at == which:
            numbers = 2 * generator.integers(quarter, 2 * quarter, array.shape) + 1
            array[...] = (numbers * _part(dtype, generator, digits - 1, digits + 2)).astype(dtype)
        else:
            count = min(array.shape, default=1)
            places = tuple(generator.permutation(length)[:count] for length in array.shape)
            signs = generator.choice([-1, 1], count if places else ())
            array[places] = (signs * _part(dtype, generator, 1, _MOST_HALVINGS)).astype(dtype)
    return inputs


def _part(dtype: np.dtype[Any], generator: np.random.Generator, least: int, most: int) -> float:
    """A part of 1, halved so often, by lot; 1 where a format has whole numbers alone."""
    return 1 if dtype.kind == "i" else 0.5 ** generator.integers(least, most, endpoint=True)
