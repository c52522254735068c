"""Functions in plain Python, whose arrays are lists: cleared and assigned."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def zeros_in_place_of(array: list[Any]) -> list[Any]:
    """The same list, of zeros."""
    array[:] = [0] * len(array)
    return array


def assign(array: list[Any], result: Any) -> None:
    """Put what a function has returned into a list: numbers, or the only one."""
    array[:] = result if isinstance(result, Iterable) else [result]
