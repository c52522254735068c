"""A case: one kernel at one shape and dtype, with inputs, an output and the right answer."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from py_backends.contract import Problem, Reference
from py_backends.harness.arena import Arena, span
from py_backends.harness.check import Verdict, judge, reference_of
from py_backends.harness.spec import Sizes
from py_backends.number_formats import number_format


class Case(Arena):
    """Inputs drawn from a seeded generator, the same bytes for every backend, in an arena of their own."""

    def __init__(self, problem: Problem, sizes: Sizes, dtype: np.dtype[Any], seed: int) -> None:
        self.problem, self.shapes = problem, problem.shapes(sizes)
        result = problem.result_dtype(dtype)
        dtypes = [*[dtype] * len(problem.inputs), result]
        ends = [span(math.prod(shape), sizes, each).end for shape, each in zip(self.shapes, dtypes, strict=True)]
        super().__init__(ends)
        self.place(sizes, dtype, self.shapes, result=result)
        generator, each = np.random.default_rng(seed), number_format(dtype)
        for array in self.inputs:
            each.fill_with_random(array, generator)

    @cached_property
    def reference(self) -> Reference:
        """The right answer."""
        inputs = [array.reshape(shape) for array, shape in zip(self.inputs, self.shapes[:-1], strict=True)]
        return reference_of(self.problem, inputs, self.sizes)

    def judge(self) -> Verdict:
        """Judge what stands in the output now."""
        if trespass := self.trespass():
            return Verdict.wrong(self.problem.rule, trespass)
        return judge(self.output, self.reference, self.problem.rule)
