"""The right answer of a kernel, and how far from it a result may lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Reference:
    """The right answer of one case.

    value: the result, in float64 where a bound is given, else in the dtype of the result.
    bound: the largest allowed error of each element, 0 where it must equal `value`; None where every bit must agree.
    overflow: True where infinity or NaN passes too; None for nowhere.
    """

    value: Array
    bound: Array | None = None
    overflow: Array | None = None
