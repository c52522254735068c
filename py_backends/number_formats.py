"""The number formats: what has to be known of each dtype, a line for each, and nowhere else.

Which of them a backend computes in, it declares itself (`Backend.dtypes`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py_backends.errors import WrongRequest

if TYPE_CHECKING:
    import numpy as np  # which `--help`, where the names of the formats stand, does without


@dataclass(frozen=True)
class NumberFormat:
    """A dtype of arrays.

    name: in NumPy, in `--dtype` and in results.
    c: what C++, CUDA, OpenCL C and SYCL call it.
    drawn: the format in which random inputs are drawn, before they are rounded once.
    poison: fills an output before a run, and the memory around inputs: who reads it spoils the result.
    kept: stands around an output, and has to stand there after the run: no result, and not the poison.
    """

    name: str
    c: str
    drawn: str
    poison: float = math.nan
    kept: float = -1.0e30


FORMATS = {
    each.name: each
    for each in (
        NumberFormat("float32", c="float", drawn="float32"),
        NumberFormat("float64", c="double", drawn="float64"),
    )
}
DTYPES = tuple(FORMATS)
"""Their names."""


def number_format(dtype: np.dtype[Any]) -> NumberFormat:
    """What is known of a dtype; WrongRequest where that is nothing."""
    if dtype.name not in FORMATS:
        raise WrongRequest(f"there is no number format {dtype.name}: there are {', '.join(DTYPES)}")
    return FORMATS[dtype.name]
