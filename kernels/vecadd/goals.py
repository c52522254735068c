"""What is asked of vecadd's sources, in figures of `python -m benchmarks`."""

from __future__ import annotations

from benchmarks.contenders import (
    AVX,
    CPP,
    CUDA,
    DEVICE_COPY,
    NUMBA_CPU,
    NUMPY,
    OPENCL,
    OPENMP,
    POCL,
    STREAMED,
    SYCL,
    in_float32,
)
from benchmarks.lines import HALVES, NARROW, WIDE, Group, Line, at, of_directives, vectors

_FEW = 1024
"""Elements of the vectors that show what a call costs, whatever the others are."""
_ON_CPUS = (AVX, OPENMP, CPP, OPENCL, POCL, SYCL, NUMBA_CPU)
_LINES = (
    Line(WIDE, AVX, (STREAMED,), "of the non-temporal ceiling", 0.95, vectors),
    Line(WIDE, AVX, (NUMPY,), "of NumPy", 2.3, vectors),
    # OpenCL C and SYCL have a built-in for non-temporal stores, Numba an intrinsic of one's own; of OpenMP's clause
    # `nontemporal` g++ makes ordinary stores.
    Line(WIDE, OPENMP, (STREAMED,), "of the non-temporal ceiling", 0.70, vectors),
    *(Line(WIDE, who, (STREAMED,), "of the non-temporal ceiling", 0.90, vectors) for who in _ON_CPUS[3:]),
    Line(WIDE, AVX, (NUMPY,), "times numpy.add a call", 4.0, lambda _: at(_FEW)([_FEW]), more={"at_most": True}),
    # Half the bytes an element: nearly twice the elements a second.
    Line(HALVES, AVX, (in_float32(AVX),), "times its float32", 1.9, vectors),
    *(Line(HALVES, who, (in_float32(who),), "times its float32", 1.7, vectors) for who in _ON_CPUS[1:]),
    of_directives(vectors),
)
_ON_GPUS = (Line(("float32",), CUDA, (DEVICE_COPY,), "of a copy within its memory", 0.95, vectors),)
GOALS = (
    Group(_LINES, WIDE, lambda scale: [scale.elements], one_dtype=True),
    Group(_LINES, NARROW, lambda scale: [scale.elements]),
    Group(_ON_GPUS, WIDE, lambda scale: [scale.elements_on_gpus], on_gpus=True),
)
