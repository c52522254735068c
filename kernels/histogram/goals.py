"""What is asked of histogram's sources, in figures of `python -m benchmarks`.

Inputs are uniform, or all in one bin: a source that is fast for the one may be slow for the other. What is asked over
`np.bincount` of bins that are there already, 3 times, is measured by a race, since no statement on floats has them.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.contenders import AVX, CPP, CUDA, DEVICE_COPY, KERNEL, OPENCL, OPENMP, SYCL, Contender
from benchmarks.lines import WIDE, Group, Line, of_directives, vectors

_LOOP = replace(CPP, label="cpp lecture", variant="lecture")
_RANKS, _LAUNCHES_OF_AVX = Contender("mpi 2x1", KERNEL, "mpi", "2x1"), Contender("avx launches", KERNEL, "avx")
_UNIFORM, _ONE_BIN = "", ", one bin"
_LINES = (
    *(
        Line(WIDE, who, (_LOOP,), f"of the serial loop{where}", 1.9, vectors, under={"skew": skew})
        for where, skew in ((_UNIFORM, 0.0), (_ONE_BIN, 1.0))
        for who in (AVX, OPENMP)
    ),
    *(
        Line(WIDE, who, (OPENMP,), f"of openmp{where}", 0.7, vectors, under={"skew": skew})
        for where, skew in ((_UNIFORM, 0.0), (_ONE_BIN, 1.0))
        for who in (OPENCL, SYCL)
    ),
    Line(WIDE, _RANKS, (_LAUNCHES_OF_AVX,), "of avx on as many threads", 0.85, vectors),
    of_directives(vectors),
)
_ON_GPUS = (Line(WIDE, CUDA, (DEVICE_COPY,), "of a copy within its memory", None, vectors),)

GOALS = (
    Group(_LINES, WIDE, lambda scale: [scale.elements]),
    Group(_ON_GPUS, WIDE, lambda scale: [scale.elements_on_gpus], on_gpus=True),
)
