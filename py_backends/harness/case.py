"""A case: one kernel at one shape and dtype, with inputs, an output and the right answer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from py_backends.contract import Array, Problem, Reference
from py_backends.number_formats import number_format
from py_backends.results.check import Verdict, check_output, reference_of
from py_backends.results.spec import Sizes
from py_backends.workers.arena import TO_MOVE_IN, Arena, span

_MOST_MEASURED = 2**25
"""Elements of all arrays together. Above this, a second result in float64 would take too long."""


class Case(Arena):
    """The arrays of one kernel at one shape and dtype, in an arena of their own.

    A seeded generator draws the inputs: every backend gets the same bytes.
    """

    def __init__(self, problem: Problem, sizes: Sizes, dtype: np.dtype[Any], seed: int) -> None:
        self.problem, self.shapes = problem, problem.shapes(sizes)
        result = problem.result_dtype(dtype)
        dtypes = [*[dtype] * len(problem.inputs), result]
        ends = [span(math.prod(shape), sizes, each).end for shape, each in zip(self.shapes, dtypes, strict=True)]
        super().__init__([end + TO_MOVE_IN for end in ends])
        self.place(sizes, dtype, self.shapes, result=result)
        self._seed = seed
        for array, numbers in zip(self.inputs, self._drawn(), strict=True):
            array[...] = (numbers if dtype.kind != "i" else np.rint(numbers)).reshape(-1)

    def _drawn(self) -> Iterable[Array]:
        """The inputs, before they are rounded to the case's dtype."""
        return self.problem.draw(self.sizes, self.dtype, np.random.default_rng(self._seed))

    @cached_property
    def reference(self) -> Reference:
        """The right answer."""
        inputs = [array.reshape(shape) for array, shape in zip(self.inputs, self.shapes[:-1], strict=True)]
        return reference_of(self.problem, inputs, self.sizes)

    def check_output(self) -> Verdict:
        """Judge the current content of the output."""
        if trespass := self.trespass():
            return Verdict.wrong(self.problem.rule, trespass)
        found = check_output(self.output, self.reference, self.problem.rule)
        return replace(found, check=replace(found.check, relative_error=self._relative_error()))

    @cached_property
    def _exact(self) -> Array | None:
        """The float64 result of the unrounded inputs; None if it would take too long, or the kernel has no float64."""
        if sum(map(math.prod, self.shapes)) > _MOST_MEASURED or "float64" not in self.problem.dtypes:
            return None
        if self.dtype.name == number_format(self.dtype).drawn and self.reference.value.dtype == np.float64:
            return self.reference.value
        inputs = [numbers.astype(np.float64) for numbers in self._drawn()]
        return reference_of(self.problem, inputs, self.sizes).value

    def _relative_error(self) -> float | None:
        """The Euclidean norm of the output's error over that of the exact result.

        None if the exact result has the norm 0 or is not known, or if the quotient is not finite.
        """
        if self._exact is None:
            return None
        with np.errstate(all="ignore"):  # a wrong output may hold anything
            size = float(np.linalg.norm(self._exact))
            error = float(np.linalg.norm(self.output.astype(np.float64) - self._exact))
        return error / size if size and math.isfinite(error / size) else None
