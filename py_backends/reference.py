"""The right answer of a kernel, and how far from it a result may lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
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

    @property
    def width(self) -> float:
        """The median of the bound over the size of the value, of elements that are not 0; 0 where there are none."""
        size = np.abs(self.value)
        counted = np.isfinite(size) & (size > 0)
        if self.bound is None or not counted.any():
            return 0.0
        return float(np.median(self.bound[counted] / size[counted]))


WIDE, TOO_WIDE = 0.1, 1.0
"""A bound of which the first is the width judges little. One that is wider than the second judges nothing: 0 passes."""


def remark_of_width(width: float) -> str | None:
    """What to tell of a bound of this width; None where it judges well."""
    return f"the bound is {width:.2g} of the values, in the median: it judges little" if width > WIDE else None
