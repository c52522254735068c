"""A case: one kernel at one shape and dtype, with inputs, an output and the right answer."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from py_backends._contract import Array, Problem, Reference
from py_backends.harness.check import Verdict, judge, reference_of
from py_backends.harness.memory import SharedArray, guard_elements

_GUARD_VALUE = -1.0e30
"""Stands behind every output. Not NaN, since that is what reading past an input gives."""


class Case:
    """Inputs drawn from a seeded generator into shared memory, the same bytes for every backend.

    Behind the inputs stands NaN, so that a kernel that reads too far gives itself away; behind the
    output a value that must still be there after each checked run.
    """

    def __init__(self, problem: Problem, sizes: tuple[int, ...], dtype: np.dtype[Any], seed: int) -> None:
        self.problem, self.sizes, self.dtype = problem, sizes, dtype
        self.shapes = problem.shapes(sizes)
        self.guard = guard_elements(sizes)
        arrays = [SharedArray.create(math.prod(shape), self.guard, dtype) for shape in self.shapes]
        self._inputs, self._output = arrays[:-1], arrays[-1]
        generator = np.random.default_rng(seed)
        for shared in self._inputs:
            generator.standard_normal(dtype=dtype, out=shared.content)
            shared.guard.fill(np.nan)

    @property
    def descriptors(self) -> list[int]:
        """Of the inputs and the output, for a worker to attach."""
        return [shared.descriptor for shared in (*self._inputs, self._output)]

    @property
    def elements(self) -> list[int]:
        return [shared.elements for shared in (*self._inputs, self._output)]

    @cached_property
    def reference(self) -> Reference:
        inputs: list[Array] = [
            shared.content.reshape(shape) for shared, shape in zip(self._inputs, self.shapes[:-1], strict=True)
        ]
        return reference_of(self.problem, inputs, self.sizes)

    def poison(self) -> None:
        """Fill the output with NaN, so that nothing old can pass for a result."""
        self._output.content.fill(np.nan)
        self._output.guard.fill(_GUARD_VALUE)

    def judge(self) -> Verdict:
        """Judge what stands in the output now."""
        if not (self._output.guard == self.dtype.type(_GUARD_VALUE)).all():
            return Verdict.wrong(self.problem.rule, "it wrote past the end of its output")
        return judge(self._output.content.reshape(self.shapes[-1]), self.reference, self.problem.rule)

    def close(self) -> None:
        for shared in (*self._inputs, self._output):
            shared.close()
