"""What is asked of heat's sources, in figures of `python -m benchmarks`."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.contenders import (
    AVX,
    COPIED,
    CUDA,
    DEVICE_COPY,
    LECTURE_OF_OPENMP,
    NUMBA_CPU,
    OPENCL,
    OPENMP,
    SYCL,
)
from benchmarks.lines import WIDE, Group, Line, Places, Scale, of_directives

_LARGE, _SMALL, _STEPS = (4096, 4096), (512, 512), 64
"""Matrices that fit no cache, and the caches."""


def _passes(sizes: Sequence[tuple[int, ...]]) -> Places:
    """All steps, against as many passes at a ceiling of memory."""
    large = sizes[0]
    return f"{_STEPS} steps", [((*large, _STEPS), (*large, 1))]


def _steps(sizes: Sequence[tuple[int, ...]]) -> Places:
    """All steps on the large matrix."""
    large = *sizes[0], _STEPS
    return f"{_STEPS} steps", [(large, large)]


def _out_of_caches(sizes: Sequence[tuple[int, ...]]) -> Places:
    """A step on a large matrix, against one on a matrix that caches hold."""
    large, *small = sizes
    return f"{_STEPS} steps", [((*large, _STEPS), (*each, _STEPS)) for each in small]


def _grids(scale: Scale) -> tuple[tuple[int, int], ...]:
    if scale.is_usual:
        return _LARGE, _SMALL
    return (max(scale.sizes),) * 2, (min(scale.sizes),) * 2


_LINES = (
    Line(WIDE, LECTURE_OF_OPENMP, (COPIED,), "of a copy a step", 0.53, _passes),
    *(
        Line(WIDE, who, (COPIED,), "of a copy a step", ratio, _passes)
        for who, ratio in ((AVX, 1.8), (OPENMP, 1.4), (OPENCL, 1.2), (SYCL, 1.2), (NUMBA_CPU, None))
    ),
    # Either of the two is asked of opencl and sycl.
    *(Line(WIDE, who, (who,), "of its rate in caches", 0.70, _out_of_caches) for who in (OPENCL, SYCL)),
    of_directives(_steps),
)
_ON_GPUS = (Line(WIDE, CUDA, (DEVICE_COPY,), "of a copy a step", 0.80, _passes),)
GOALS = (
    Group(_LINES, WIDE, _grids),
    Group(_ON_GPUS, WIDE, lambda scale: _grids(scale)[:1], on_gpus=True),
)
