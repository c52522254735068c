"""What is asked of attention's sources, in figures of `python -m benchmarks`."""

from __future__ import annotations

from benchmarks.contenders import AMX, AVX, MKL, NUMBA_CPU, ONEDNN, OPENCL, OPENMP, PEAK, SYCL, in_float32
from benchmarks.lines import DTYPES, WIDE, Group, Line, of_directives

_SIZES = (4096, 64, 4096)
"""Queries, their width, and keys."""
_LINES = (
    # Asked are 0.70 of the rate of its own matmul at n = 1024, which reaches about 0.85 of the peak.
    Line(WIDE, AVX, (PEAK,), "of the FMA peak", 0.60),
    Line(("float32",), AVX, (MKL, ONEDNN), "of the best library in three calls", 1.1),
    Line(("float64",), AVX, (MKL,), "of the best library in three calls", 1.1),
    *(Line(WIDE, who, (AVX,), "of avx", 0.70) for who in (OPENCL, SYCL)),
    *(Line(WIDE, who, (AVX,), "of avx", 0.50) for who in (OPENMP, NUMBA_CPU)),
    Line(("bfloat16",), AMX, (in_float32(AVX),), "times its float32", 2.0),
    of_directives(),
)
GOALS = (Group(_LINES, DTYPES, lambda scale: [_SIZES if scale.is_usual else (max(scale.sizes),) * 3]),)
