"""What is asked of transpose's sources, in figures of `python -m benchmarks`."""

from __future__ import annotations

from benchmarks.contenders import AVX, COPIED, CUDA, DEVICE_COPY, MKL, NUMBA_CPU, NUMPY, OPENCL, OPENMP, SYCL
from benchmarks.lines import WIDE, Group, Line, Scale, at, of_directives

_SHAPES = ((5000, 3001), (4096, 4096), (8192, 8192))
"""With rows that begin anywhere, and rows that compete for places in caches."""
_LINES = (
    Line(WIDE, AVX, (COPIED,), "of the copy ceiling at 5000x3001", 0.75, at(_SHAPES[0])),
    Line(WIDE, AVX, (COPIED,), "of the copy ceiling", 0.65, at(*_SHAPES[1:]), more={"summary": "worst"}),
    Line(WIDE, AVX, (NUMPY, MKL), "of the best library", 1.00, more={"summary": "worst"}),
    *(
        Line(WIDE, who, (COPIED,), "of the copy ceiling", 0.50, more={"summary": "worst"})
        for who in (OPENMP, OPENCL, SYCL, NUMBA_CPU)
    ),
    of_directives(),
)
_ON_GPUS = (Line(WIDE, CUDA, (DEVICE_COPY,), "of a copy within its memory", 0.90),)


def _shapes(scale: Scale) -> tuple[tuple[int, int], ...]:
    return _SHAPES if scale.is_usual else ((max(scale.sizes), max(scale.sizes) + 1),)


GOALS = (
    Group(_LINES, WIDE, _shapes),
    Group(_ON_GPUS, WIDE, lambda scale: _shapes(scale)[-1:], on_gpus=True),
)
