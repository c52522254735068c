"""The number formats: what has to be known of each dtype, a line for each, and nowhere else.

Which of them a kernel has, it declares itself (`Problem.dtypes`), and so does a backend (`Backend.dtypes`).
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
    c: what C++, CUDA, OpenCL C and SYCL call it; the types that they do not have are in kernels/formats.hpp. Empty for
        a format that is not there either.
    bits: the type of OpenCL C in which its bits lie in memory, where the language has no type for it.
    sums: the format of sums of it, by its name, where that is another one: see `Problem.sums`.
    mistaken_for: a format, by its name, that a source may take it for.
    drawn: the format in which random inputs are drawn, before they are rounded once. None where kernels do not run in
        this one, and only some of their arrays have it.
    poison: fills an output before a run, and the memory around inputs: who reads it spoils the result.
    kept: stands around an output, and has to stand there after the run: no result, and not the poison.
    """

    name: str
    c: str
    drawn: str | None
    mistaken_for: str = "float64"
    bits: str | None = None
    sums: str | None = None
    poison: float = math.nan
    kept: float = -1.0e30

    def draw(self, shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray[Any, Any]:
        """Random numbers, not yet rounded to this format: normally distributed; for integers between -128.5 and 127.5.

        That is the range of int8. Wider integers get the same numbers.
        """
        drawn: Any = self.drawn
        if math.isnan(self.poison):
            return generator.standard_normal(shape, drawn)
        numbers = generator.random(shape, drawn)
        numbers *= 256
        numbers -= 128.5
        return numbers


FORMATS = {
    each.name: each
    for each in (
        NumberFormat("float32", c="float", drawn="float32"),
        NumberFormat("float64", c="double", drawn="float64", mistaken_for="float32"),
        NumberFormat(
            "float16", "Float16", "float32", mistaken_for="bfloat16", bits="ushort", sums="float32", kept=-61440.0
        ),
        NumberFormat("bfloat16", "BFloat16", "float32", mistaken_for="float16", bits="ushort", sums="float32"),
        NumberFormat(
            "int8", "signed char", "float32", mistaken_for="uint8", bits="char", sums="int32", poison=0x55, kept=-0x56
        ),
        NumberFormat("int32", "int", None, mistaken_for="float32", poison=0x5A5A5A5A, kept=-0x56565656),
        NumberFormat("int64", "long long", None, mistaken_for="int32", poison=0x5A5A5A5A, kept=-0x56565656),
    )
}
DTYPES = tuple(each.name for each in FORMATS.values() if each.drawn)
"""The names of those in which kernels run."""
COMPILED = tuple(name for name in DTYPES if FORMATS[name].c)
"""The names of those that compiled sources have a type for too."""


def number_format(dtype: np.dtype[Any]) -> NumberFormat:
    """What is known of a dtype; WrongRequest where that is nothing."""
    if dtype.name not in FORMATS:
        raise WrongRequest(f"there is no number format {dtype.name}: there are {', '.join(FORMATS)}")
    return FORMATS[dtype.name]
