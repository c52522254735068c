"""Functions in plain Python, whose arrays are lists: as long as the case, cleared and assigned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def exactly(arrays: Sequence[list[Any]], counts: Sequence[int]) -> Iterator[list[list[Any]]]:
    """Within, lists of so many elements, without the guard zone behind them.

    They are copies, and what a function has done to them is done to the others afterwards, inputs too. Where a function
    is timed there is no zone, and nothing is copied.
    """
    own = [array if len(array) == count else array[:count] for array, count in zip(arrays, counts, strict=True)]
    yield own
    for array, part, count in zip(arrays, own, counts, strict=True):
        if part is not array:
            array[:count] = part


def zeros_in_place_of(array: list[Any]) -> list[Any]:
    """The same list, of zeros."""
    array[:] = [0] * len(array)
    return array


def assign(array: list[Any], result: Any) -> None:
    """Put what a function has returned into a list: numbers, or the only one."""
    array[:] = result if isinstance(result, Iterable) else [result]
