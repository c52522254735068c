"""What is asked of dot's sources, in figures of `python -m benchmarks`."""

from __future__ import annotations

from benchmarks.contenders import AVX, CUDA, DEVICE_COPY, MKL, NUMBA_CPU, NUMPY, OPENCL, OPENMP, READ, SYCL
from benchmarks.lines import WIDE, Group, Line, Scale, at, largest, of_directives

_LENGTHS = (1000, 10**4, 10**5, 10**6, 10**7)
"""Of vectors in and out of the caches, beside the largest."""
_LINES = (
    *(Line(WIDE, who, (READ,), "of the read ceiling", 0.90, largest) for who in (AVX, OPENMP, OPENCL, SYCL)),
    Line(WIDE, NUMBA_CPU, (READ,), "of the read ceiling", 0.85, largest),
    Line(WIDE, AVX, (NUMPY, MKL), "of the best library", 1.00),
    Line(WIDE, AVX, (NUMPY, MKL), "of the best library, worst", 0.90, more={"summary": "worst"}),
    Line(WIDE, AVX, (NUMPY,), "times numpy.dot a call", 1.1, at(_LENGTHS[0]), more={"at_most": True}),
    of_directives(largest),
)
_ON_GPUS = (Line(WIDE, CUDA, (DEVICE_COPY,), "of a copy within its memory", 0.90),)


def _lengths(scale: Scale) -> list[int]:
    return [*(each for each in _LENGTHS if each < scale.elements), scale.elements]


GOALS = (
    Group(_LINES, WIDE, _lengths),
    Group(_ON_GPUS, WIDE, lambda scale: [scale.elements_on_gpus], on_gpus=True),
)
