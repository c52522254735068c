"""What is asked of scan's sources, in figures of `python -m benchmarks`."""

from __future__ import annotations

from benchmarks.contenders import (
    AVX,
    CALL,
    COPIED,
    CUDA,
    DEVICE_COPY,
    KERNEL,
    NUMBA_CPU,
    NUMPY,
    OPENCL,
    OPENMP,
    SYCL,
    Contender,
)
from benchmarks.lines import WIDE, Group, Line, of_directives, vectors

_SERIAL = Contender("cpp lecture", CALL, "cpp", variant="lecture")
_RANKS = Contender("mpi 2x1", KERNEL, "mpi", "2x1")
_LINES = (
    *(
        Line(WIDE, who, (COPIED,), "of the copy ceiling", ratio, vectors)
        for who, ratio in ((AVX, 0.75), (OPENMP, 0.60), (OPENCL, 0.50), (SYCL, 0.50), (NUMBA_CPU, 0.60))
    ),
    Line(("float32",), AVX, (NUMPY,), "of NumPy", 8.0, vectors),
    Line(("float64",), AVX, (NUMPY,), "of NumPy", None, vectors),
    Line(("float32",), AVX, (_SERIAL,), "of a serial loop, one thread", 2.2, vectors, under={"threads": 1}),
    Line(("float64",), AVX, (_SERIAL,), "of a serial loop, one thread", None, vectors, under={"threads": 1}),
    Line(("float32",), _RANKS, (AVX,), "of avx on two threads", 0.60, vectors, under={"threads": 2}),
    of_directives(vectors),
)
_ON_GPUS = (Line(WIDE, CUDA, (DEVICE_COPY,), "of a copy within its memory", None),)
GOALS = (
    Group(_LINES, WIDE, lambda scale: [scale.elements]),
    Group(_ON_GPUS, WIDE, lambda scale: [scale.elements_on_gpus], on_gpus=True),
)
