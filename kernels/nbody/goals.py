"""What is asked of nbody's sources, in figures of `python -m benchmarks`."""

from __future__ import annotations

from benchmarks.contenders import AVX, CUDA, DEVICE_PEAK, NUMBA_CPU, OPENCL, OPENMP, PEAK, SYCL
from benchmarks.lines import WIDE, Group, Line, of_directives

_BODIES = 16_384
"""As many points as bodies."""
_ON_A_GPU = (131_072, 1024)
"""Points enough to fill it with a work item each, and bodies few enough for a reference in seconds."""
_LINES = (
    # avx has 17 instructions for a register of pairs in float32. 12 of them multiply. The others are subtractions, the
    # estimate of a root and a minimum, which many CPUs compute beside these. A pair counts as 20 operations, 12 FMAs as
    # 24. So 20/24 of the FMA peak are the most, of which 0.75 are asked. In float64 there are three more.
    Line(("float32",), AVX, (PEAK,), "of the FMA peak", 0.62),
    Line(("float64",), AVX, (PEAK,), "of the FMA peak", 0.50),
    Line(WIDE, OPENMP, (AVX,), "of avx", 0.30),
    *(Line(WIDE, who, (AVX,), "of avx", 0.60) for who in (OPENCL, SYCL)),
    Line(WIDE, NUMBA_CPU, (AVX,), "of avx", None),
    of_directives(),
)
_ON_GPUS = (Line(("float32",), CUDA, (DEVICE_PEAK,), "of the device's peak", 0.50),)
GOALS = (
    Group(_LINES, WIDE, lambda scale: [_BODIES if scale.is_usual else max(scale.sizes)]),
    Group(_ON_GPUS, WIDE, lambda scale: [_ON_A_GPU if scale.is_usual else (max(scale.sizes),) * 2], on_gpus=True),
)
