"""What is asked of matmul's sources, in figures of `python -m benchmarks`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from benchmarks.contenders import (
    AMX,
    AVX,
    AVX_AVX2,
    AVX_AVX512,
    CPP,
    CUBLAS,
    CUDA,
    MKL,
    NUMBA_CPU,
    NUMBA_CPU_AMX,
    NUMBA_CUDA,
    NUMPY,
    ONEDNN,
    OPENCL,
    OPENMP,
    PEAK,
    PEAK_OF_FORMAT,
    POCL,
    SYCL,
    SYCL_AMX,
    Contender,
    end_to_end,
    in_float32,
)
from benchmarks.lines import HALVES, NARROW, WIDE, Group, Line, Places, Scale, at, every, largest, of_directives, only

_ON_A_GPU = (4096, 8192)
_NARROW_SIZES = (512, 1000, 1024, 2048, 4096)
"""In place of the usual ones in the narrow formats."""
_ONE_THREAD_AT = 2048
_LARGE = (1024, 2048)
"""Where a matrix unit is held to its peak."""
_NEIGHBOURS_FROM, _NEIGHBOURS_TO, _ROUND = 256, 2048, 8
"""Sizes whose neighbours are measured too: multiples of 8 in this range. Above it three runs take too long."""
_HELD_TO_AVX2 = (("OPENBLAS_CORETYPE", "Haswell"),)
_ONEDNN_3_2 = (("PY_BACKENDS_ONEDNN", "build/onednn-3.2/lib/libdnnl.so.3"),)
"""An older oneDNN, which multiplied bfloat16 faster at n = 512. `make benchmarks` installs it outside the environment:
both wheels have files of the same names."""
_large = partial(only, wanted=_LARGE)
_from_512, _from_1000, _from_1024 = (partial(every, least=least) for least in (512, 1000, 1024))


def _neighbours(sizes: Sequence[int]) -> Places:
    """A size one off from a round one is not much slower per operation."""
    round_ones = [size for size in sizes if _NEIGHBOURS_FROM <= size <= _NEIGHBOURS_TO and size % _ROUND == 0]
    return f"n from {_NEIGHBOURS_FROM}", [(size + off, size) for size in round_ones for off in (-1, 1)]


def _on_one_thread(who: Contender, ratio: float | None, owner: str) -> Line:
    """What one thread makes of the multiply-adds that its registers could do; of others than avx it is only stated."""
    at, more = partial(only, wanted=(_ONE_THREAD_AT,)), {"subject": f"{who.label} 1 thread", "owner": owner}
    return Line(WIDE, who, (PEAK,), "of the FMA peak", ratio, at, {"threads": 1}, more)


def _of_offloading(device: Contender) -> tuple[Line, ...]:
    """The kernel alone, and with all that a call adds to it."""
    called = end_to_end(device)
    return (
        Line(("float32",), device, (NUMPY,), "of NumPy, kernel", 0.95, _from_512),
        Line(("float64",), device, (NUMPY,), "of NumPy, kernel", 0.90, _from_512),
        Line(("float32",), called, (NUMPY,), "of NumPy, end to end", 0.85, _from_1000),
        Line(("float64",), called, (NUMPY,), "of NumPy, end to end", 0.80, _from_1000),
        Line(WIDE, called, (device,), "times its kernel", 1.15, _from_1024, more=_WORST_TIME),
    )


def _near(dtypes: Sequence[str], who: Contender, ratio: float) -> Line:
    return Line(dtypes, who, (who,), "of the rate at n, at n ± 1", ratio, _neighbours, more={"summary": "worst"})


def _against(libraries: Sequence[Contender], what: str, **more: Any) -> tuple[Line, ...]:
    """The matrix unit against libraries that use it."""
    return (
        Line(("bfloat16",), AMX, libraries, what, 1.10, **more),
        Line(("float16",), AMX, libraries, what, 1.50, _from_1024, **more),
        Line(("int8",), AMX, libraries, what, 1.00, **more),
    )


_ON_CPUS = (AVX, OPENMP, CPP, OPENCL, POCL, SYCL, NUMBA_CPU)
_WORST_TIME = {"summary": "worst", "at_most": True}
_LINES = (
    Line(WIDE, AVX, (NUMPY, MKL), "of the best library", 1.00),
    Line(WIDE, AVX, (NUMPY,), "of NumPy", 1.15),
    _on_one_thread(AVX, 0.80, "avx"),
    _on_one_thread(NUMPY, None, "avx"),
    _on_one_thread(MKL, None, "avx"),
    _on_one_thread(CPP, None, "cpp"),
    Line(WIDE, AVX_AVX2, (NUMPY,), "of NumPy held to AVX2", 1.00, under={"environment": _HELD_TO_AVX2}),
    Line(WIDE, OPENMP, (NUMPY,), "of NumPy", 0.90),
    *_of_offloading(OPENCL),
    *_of_offloading(SYCL),
    Line(WIDE, POCL, (NUMPY,), "of NumPy, kernel", 0.40, _from_512),
    Line(WIDE, NUMBA_CPU, (NUMPY,), "of NumPy", 0.50, _from_512),
    *(_near(WIDE, who, 0.90) for who in _ON_CPUS),
    # The matrix unit against the libraries. Without it numbers are widened, and the target is held to its float32.
    *_against((MKL, ONEDNN), "of the best library"),
    *_against((ONEDNN,), "of oneDNN 3.2", under={"environment": _ONEDNN_3_2}),
    Line(("bfloat16",), AMX, (PEAK_OF_FORMAT,), "of the peak of the format", 0.45, _large, more={"summary": "worst"}),
    _near(("bfloat16",), AMX, 0.85),
    Line(("bfloat16",), SYCL_AMX, (AMX,), "of avx amx", 0.50),
    Line(("bfloat16",), NUMBA_CPU_AMX, (AMX,), "of avx amx", 0.60),
    *(Line(HALVES, who, (in_float32(who),), "of its float32", 0.95) for who in (AVX_AVX512, *_ON_CPUS[1:])),
    of_directives(partial(only, wanted=(1024,))),
)


def _on_gpus(size: Callable[[Sequence[Any]], Places]) -> tuple[Line, ...]:
    return (
        Line(("float32",), CUDA, (CUBLAS,), "of cuBLAS without TF32", 0.90, size),
        Line(("float64",), CUDA, (CUBLAS,), "of cuBLAS", 0.80, size),
        Line(HALVES, CUDA, (CUBLAS,), "of cuBLAS", 0.90, size),
        Line(("int8",), CUDA, (CUBLAS,), "of cuBLAS", 1.0, size),
        Line(WIDE, NUMBA_CUDA, (CUDA,), "of cuda", 0.50, size),
    )


def _narrow_sizes(scale: Scale) -> Sequence[int]:
    return _NARROW_SIZES if scale.is_usual else scale.sizes


def _sizes_on_gpus(scale: Scale) -> Sequence[int]:
    return _ON_A_GPU if scale.is_usual else [max(scale.sizes)]


GOALS = (
    Group(_LINES, WIDE, lambda scale: scale.sizes),
    Group(_LINES, NARROW, _narrow_sizes),
    Group([*_on_gpus(at(_ON_A_GPU[0])), *_on_gpus(largest)], (*WIDE, *NARROW), _sizes_on_gpus, on_gpus=True),
)
