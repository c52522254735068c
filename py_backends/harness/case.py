"""A case: one kernel at one shape and dtype, with inputs, outputs and the right answer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np

from py_backends.contract import Array, Problem, Reference
from py_backends.errors import WrongRequest
from py_backends.number_formats import number_format
from py_backends.problem import rounded_to
from py_backends.reference import remark_of_width
from py_backends.results.check import Verdict, check_outputs, references_of
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
        dtypes = problem.array_dtypes(dtype)
        ends = [span(math.prod(shape), sizes, each).end for shape, each in zip(self.shapes, dtypes, strict=True)]
        super().__init__([end + TO_MOVE_IN for end in ends])
        self.place(sizes, dtype, self.shapes, dtypes=dtypes, outputs=problem.outputs)
        self._seed = seed
        for array, numbers in zip(self.inputs, self._drawn(), strict=True):
            array[...] = rounded_to(array.dtype, numbers).reshape(-1)

    def _drawn(self) -> Iterator[Array]:
        """The inputs, one by one, before they are rounded to the case's dtype.

        Raises WrongRequest where the problem draws too few, too many, or one of another shape.
        """
        names, count = self.problem.inputs, 0
        for numbers in self.problem.given(self.sizes, self.dtype, np.random.default_rng(self._seed)):
            if count == len(names):
                raise WrongRequest(f"draw yields more arrays than the inputs {', '.join(names)}")
            array, shape = np.asarray(numbers), self.shapes[count]
            if array.shape != shape:
                raise WrongRequest(f"draw yields {names[count]} of the shape {array.shape}, and it has {shape}")
            yield array
            count += 1
        if count < len(names):
            raise WrongRequest(f"draw yields {count} of {len(names)} inputs: {names[count]} is missing")

    @cached_property
    def references(self) -> tuple[Reference, ...]:
        """The right answer for each output."""
        return self.answer()

    def seconds_of_answer(self) -> float:
        """Seconds that the right answer takes. It is computed anew."""
        begin = perf_counter()
        self.answer()
        return perf_counter() - begin

    def answer(self) -> tuple[Reference, ...]:
        """The right answer for each output, of the inputs as they are now."""
        inputs = [array.reshape(shape) for array, shape in zip(self.inputs, self.shapes, strict=False)]
        return references_of(self.problem, inputs, self.sizes, self.dtype)

    @cached_property
    def remark(self) -> str | None:
        """What a reader has to know of the bounds that come from a function; None where they judge well."""
        if self.problem.function is None or self.problem.tolerance is not None:
            return None
        return remark_of_width(max(each.width for each in self.references))

    def check_output(self) -> Verdict:
        """Judge the current content of the outputs."""
        if trespass := self.trespass():
            return Verdict.wrong(self.problem.rule, trespass)
        found = check_outputs(self.outputs, self.references, self.problem.rule)
        return replace(found, check=replace(found.check, relative_error=self._relative_error()))

    @cached_property
    def _exact(self) -> list[Array] | None:
        """The float64 results of the unrounded inputs; None if it would take too long, or the kernel has no float64."""
        if sum(map(math.prod, self.shapes)) > _MOST_MEASURED or "float64" not in self.problem.dtypes:
            return None
        values = [reference.value for reference in self.references]
        if self.dtype.name == number_format(self.dtype).drawn and all(value.dtype == np.float64 for value in values):
            return values
        exact = np.dtype(np.float64)
        dtypes = self.problem.array_dtypes(exact)
        inputs = [rounded_to(of, numbers) for numbers, of in zip(self._drawn(), dtypes, strict=False)]
        return [each.value for each in references_of(self.problem, inputs, self.sizes, exact)]

    def _relative_error(self) -> float | None:
        """The Euclidean norm of the error of all outputs over that of the exact results.

        None if the exact result has the norm 0 or is not known, or if the quotient is not finite.
        """
        if self._exact is None:
            return None
        with np.errstate(all="ignore"):  # a wrong output may hold anything
            size = math.hypot(*(float(np.linalg.norm(exact)) for exact in self._exact))
            apart = (output.astype(np.float64) - exact for output, exact in zip(self.outputs, self._exact, strict=True))
            error = math.hypot(*(float(np.linalg.norm(each)) for each in apart))
        return error / size if size and math.isfinite(error / size) else None
