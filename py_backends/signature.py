"""What shapes a kernel's arrays have: a signature as NumPy's generalised ufuncs write it, `(m,k),(k,n)->(m,n)`.

Every name is a size, the same wherever it stands, and a number is a length that never changes. The notation is that of
https://numpy.org/doc/stable/reference/c-api/generalized-ufuncs.html, without its marks for optional dimensions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any

from py_backends.errors import WrongRequest
from py_backends.wording import listed

Places = tuple[tuple[int, ...], ...]
"""For each array and dimension, which of the sizes it is."""
_DIMENSION = r"(?:[^\W\d]\w*|[1-9]\d*)"
_ARRAY = rf"\((?:{_DIMENSION}(?:,{_DIMENSION})*)?\)"
_SIGNATURE = re.compile(rf"{_ARRAY}(?:,{_ARRAY})*->{_ARRAY}")


@dataclass(frozen=True)
class Signature:
    """The dimensions of every array, by name or length: inputs, then output."""

    arrays: tuple[tuple[str, ...], ...]

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Parse a signature. Raises WrongRequest if it is invalid, or if no input has one of the output's sizes."""
        written = text.replace(" ", "")
        if _SIGNATURE.fullmatch(written) is None:
            raise WrongRequest(f"{text!r} is no signature: write it as in (m,k),(k,n)->(m,n)")
        arrays = tuple(tuple(filter(None, each.split(","))) for each in re.findall(r"\(([^)]*)\)", written))
        *inputs, output = arrays
        unknown = [name for name in output if not name.isdecimal() and name not in set(chain(*inputs))]
        if unknown:
            raise WrongRequest(f"{text!r} does not tell {unknown[0]}: no input has it")
        return cls(arrays)

    @cached_property
    def dimensions(self) -> tuple[str, ...]:
        """Every size once: those of the output, then the others, so that a matrix product has m, n and k."""
        *inputs, output = self.arrays
        return tuple(dict.fromkeys(name for name in chain(output, *inputs) if not name.isdecimal()))

    @property
    def places(self) -> tuple[tuple[int, ...], ...]:
        """For each array and dimension, which of the sizes it is; of a length that never changes, its negative."""
        order = (*range(len(self.dimensions)), *(-length for length in self._lengths))
        return tuple(tuple(order[at] for at in array) for array in self._places)

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
    def _places(self) -> tuple[tuple[int, ...], ...]:
        """For each array and dimension its place among the sizes and, behind them, the lengths that never change."""
        order = (*self.dimensions, *self._numbers)
        return tuple(tuple(map(order.index, array)) for array in self.arrays)

    def _misfit(self, kernel: str, names: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> str:
        wanted = [f"{name} of {_in_words(array)}" for name, array in zip(names, self.arrays, strict=False)]
        given = [f"{name} is {_in_words(shape)}" for name, shape in zip(names, shapes, strict=True)]
        return f"{kernel} takes {listed(wanted)}: {listed(given)}"


# Calls of a few microseconds go through these two, most of them for the shapes of the call before.
@lru_cache(1024)
def _shapes(places: Places, values: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """The shape of every array, for sizes and lengths in their order."""
    return tuple(tuple(values[at] for at in of_array) for of_array in places)


@lru_cache(1024)
def _sizes(places: Places, known: tuple[int, ...], shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...] | None:
    """The sizes and lengths for which inputs have these shapes; None where they do not fit. Unknown ones are -1."""
    found = list(known)
    for of_array, shape in zip(places, shapes, strict=False):  # the output is not among the shapes
        if len(of_array) != len(shape):
            return None
        for at, length in zip(of_array, shape, strict=True):
            if found[at] not in (-1, length):
                return None
            found[at] = length
    return tuple(found)


def _in_words(shape: Sequence[Any]) -> str:
    """A shape as people say it: "m x k", "1 x 3", "n elements", "a single number"."""
    if len(shape) > 1:
        return " x ".join(map(str, shape))
    return f"{shape[0]} element{'' if str(shape[0]) == '1' else 's'}" if shape else "a single number"
