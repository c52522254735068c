"""What shapes a kernel's arrays have: a signature as NumPy's generalised ufuncs write it, `(m,k),(k,n)->(m,n)`.

Every name is a size, the same wherever it stands, and a number is a length that never changes. The notation is that of
https://numpy.org/doc/stable/reference/c-api/generalized-ufuncs.html, without its marks for optional dimensions. It has
more: a length may be 0, or a size and some more, and an array may have a dtype of its own. This is the product of a
sparse matrix in CSR with a vector:

    (nonzeros),(nonzeros):int32,(m+1):int32,(n)->(m)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any

from py_backends.errors import WrongRequest
from py_backends.number_formats import FORMATS
from py_backends.wording import listed

Places = tuple[tuple[tuple[int, int], ...], ...]
"""For each array and dimension its place among the sizes and, behind them, the lengths that never change; and by how
much it is longer."""
_DIMENSION = r"(?:[^\W\d]\w*(?:\+[1-9]\d*)?|0|[1-9]\d*)"
_ARRAY = rf"\((?:{_DIMENSION}(?:,{_DIMENSION})*)?\)(?::\w+)?"
_ARRAYS = rf"{_ARRAY}(?:,{_ARRAY})*"
_SIGNATURE = re.compile(rf"{_ARRAYS}->{_ARRAYS}")


@dataclass(frozen=True)
class Signature:
    """The dimensions of every array, inputs and then outputs, by name or length.

    outputs: how many of the arrays are outputs.
    dtypes: for each array, the dtype that it always has; None where that is chosen for a run.
    """

    arrays: tuple[tuple[str, ...], ...]
    outputs: int
    dtypes: tuple[str | None, ...]

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Parse a signature. Raises WrongRequest if it is invalid, or if no input has one of an output's sizes."""
        written = text.replace(" ", "")
        if _SIGNATURE.fullmatch(written) is None:
            raise WrongRequest(
                f"{text!r} is no signature: write it as in (m,k),(k,n)->(m,n), or (3),(n+1)->(n); for a length of "
                "two names, or of one of `numbers`, write a method `shapes` too"
            )
        found = re.findall(r"\(([^)]*)\)(?::(\w+))?", written)
        arrays = tuple(tuple(filter(None, dimensions.split(","))) for dimensions, _ in found)
        outputs = written.partition("->")[2].count("(")
        known = set(map(_name, chain(*arrays[:-outputs])))
        unknown = [name for name in map(_name, chain(*arrays[-outputs:])) if name and name not in known]
        if unknown:
            raise WrongRequest(f"{text!r} does not tell {unknown[0]}: no input has it")
        others = [dtype for _, dtype in found if dtype and dtype not in FORMATS]
        if others:
            raise WrongRequest(f"{text!r} has an array of {others[0]}, and there are {', '.join(FORMATS)}")
        return cls(arrays, outputs, tuple(dtype or None for _, dtype in found))

    @cached_property
    def dimensions(self) -> tuple[str, ...]:
        """Every size once: those of the outputs, then the others, so that a matrix product has m, n and k."""
        inputs, outputs = self.arrays[: -self.outputs], self.arrays[-self.outputs :]
        return tuple(dict.fromkeys(filter(None, map(_name, chain(*outputs, *inputs)))))

    @cached_property
    def places(self) -> tuple[tuple[int, ...], ...] | None:
        """For each array and dimension, which of the sizes it is; of a length that never changes, its negative.

        None where a length is a size and some more, or 0, which has no negative.
        """
        if 0 in self._lengths or any(more for array in self._places for _, more in array):
            return None
        order = (*range(len(self.dimensions)), *(-length for length in self._lengths))
        return tuple(tuple(order[at] for at, _ in array) for array in self._places)

    def shapes(self, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """The shape of every array for sizes in the order of `dimensions`."""
        return _shapes(self._places, (*sizes, *self._lengths))

    def sizes(self, kernel: str, names: Sequence[str], shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
        """The sizes for which inputs have these shapes; ValueError, in one line, where there are none.

        kernel, names: what the kernel and its inputs are called.
        """
        found = _sizes(self._places, (*self._unknown, *self._lengths), shapes)
        if found is None:
            raise ValueError(self._misfit(kernel, names, shapes))
        return found[: len(self._unknown)]

    @cached_property
    def _unknown(self) -> tuple[int, ...]:
        """Stand for sizes that are not known yet."""
        return (-1,) * len(self.dimensions)

    @cached_property
    def _numbers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name in chain(*self.arrays) if name.isdecimal()))

    @cached_property
    def _lengths(self) -> tuple[int, ...]:
        """Those that never change."""
        return tuple(map(int, self._numbers))

    @cached_property
    def _places(self) -> Places:
        order = (*self.dimensions, *self._numbers)
        return tuple(
            tuple((order.index(_name(each) or each), int(each.partition("+")[2] or 0)) for each in array)
            for array in self.arrays
        )

    def _misfit(self, kernel: str, names: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> str:
        wanted = [f"{name} of {_in_words(array)}" for name, array in zip(names, self.arrays, strict=False)]
        given = [f"{name} is {_in_words(shape)}" for name, shape in zip(names, shapes, strict=True)]
        return f"{kernel} takes {listed(wanted)}: {listed(given)}"


# Calls of a few microseconds go through these two, most of them for the shapes of the call before.
@lru_cache(1024)
def _shapes(places: Places, values: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """The shape of every array, for sizes and lengths in their order."""
    return tuple(tuple(values[at] + more for at, more in of_array) for of_array in places)


@lru_cache(1024)
def _sizes(places: Places, known: tuple[int, ...], shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...] | None:
    """The sizes and lengths for which inputs have these shapes; None where they do not fit. Unknown ones are -1."""
    found = list(known)
    for of_array, shape in zip(places, shapes, strict=False):  # outputs are not among the shapes
        if len(of_array) != len(shape):
            return None
        for (at, more), length in zip(of_array, shape, strict=True):
            if found[at] not in (-1, length - more) or length < more:
                return None
            found[at] = length - more
    return tuple(found)


def _in_words(shape: Sequence[Any]) -> str:
    """A shape as people say it: "m x k", "1 x 3", "n elements", "a single number"."""
    if len(shape) > 1:
        return " x ".join(map(str, shape))
    return f"{shape[0]} element{'' if str(shape[0]) == '1' else 's'}" if shape else "a single number"


def _name(dimension: str) -> str | None:
    """The name of the size in a dimension; None for a length that never changes."""
    return None if dimension.isdecimal() else dimension.partition("+")[0]
