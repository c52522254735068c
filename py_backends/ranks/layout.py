"""How a kernel's arrays lie on ranks: what the source for `mpi` says of it."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from py_backends.contract import Problem
from py_backends.ranks.blocks import Boxes, on_every, on_first

Layout = tuple[tuple[tuple[int, ...], Boxes, Boxes], ...]
"""For each array its shape, its box on each rank, and the box that each rank computes with."""

_ELEMENT = (1,)
"""How an array without dimensions lies on ranks: the box of one element can be empty, which one without cannot."""


@dataclass(frozen=True)
class Distributed:
    """A kernel on ranks for inputs of a dtype: its problem, and its source's module.

    The module's `blocks` says which box of each array a rank holds, and its `needs` which box its kernel is given.
    Where it has no `needs`, that is the same box. Else it contains the rank's own box, and others' shares are gathered
    around that.
    """

    problem: Problem
    text: ModuleType
    dtype: np.dtype[Any]

    @property
    def widths(self) -> tuple[int, ...]:
        """Bytes of an element of each array."""
        return tuple(each.itemsize for each in self.problem.array_dtypes(self.dtype))

    def layout(self, ranks: int, sizes: tuple[int, ...]) -> Layout:
        """How its arrays lie on so many ranks.

        An array without dimensions lies on every rank if it is an input, whatever the source says, and on the first if
        it is an output. Each rank has memory for it.
        """
        shapes = self.problem.shapes(sizes)
        held, needed = (
            zip(*(boxes(rank, ranks, self.widths, *sizes) for rank in range(ranks)), strict=True)
            for boxes in (self.text.blocks, getattr(self.text, "needs", self.text.blocks))
        )
        every, inputs = on_every(_ELEMENT, ranks), len(self.problem.inputs)
        of_element = {
            at: every if at < inputs else on_first(_ELEMENT, ranks) for at, shape in enumerate(shapes) if not shape
        }
        return tuple(
            (_ELEMENT, of_element[at], every) if at in of_element else array
            for at, array in enumerate(zip(shapes, held, needed, strict=True))
        )
