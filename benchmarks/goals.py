"""What is asked of the tuned kernels: every ratio, by whom it is measured, against whom, and at which sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from py_backends import registry
from py_backends.harness.ceilings import STREAMED as STREAMED_ADDITIONS
from py_backends.harness.timed_ceilings import COPIES, MULTIPLY_ADDS

SIZES = (64, 127, 256, 512, 1000, 1024, 2048, 4096)
"""Of square matrices; a geometric mean is over these, unless its goal says otherwise."""
ELEMENTS = 2**26
"""Of the vectors that are far larger than caches; a ceiling of memory needs that."""
FEW_ELEMENTS = 1024
"""Of the vectors that show what a call costs."""
GPU_SIZES, GPU_ELEMENTS = (4096, 8192), 2**28
NARROW_SIZES = (512, 1000, 1024, 2048, 4096)
"""In place of `SIZES` in the narrow formats."""
WIDE, NARROW = ("float32", "float64"), ("bfloat16", "float16", "int8")
DTYPES = WIDE + NARROW
_ONE_THREAD_AT = 2048
_LARGE = (1024, 2048)
"""Where a matrix unit is held to its peak."""
_NEIGHBOURS_FROM, _NEIGHBOURS_TO, _ROUND = 256, 2048, 8
"""Sizes whose neighbours are measured too: multiples of 8 in this range. Above it three runs take too long."""


LIBRARY, CALL, KERNEL = "library", "call", "kernel"
"""What is timed: NumPy's function, `pb.matmul`, launch and wait on the device. A ceiling is timed by its kind."""


@dataclass(frozen=True)
class Contender:
    """Somebody who is timed, or a ceiling.

    label: its name in tables.
    timed: `LIBRARY`, `CALL`, `KERNEL`, or the kind of a ceiling (`harness.roofline`).
    backend: whose it is; of a ceiling, on whose device.
    target: the first available one where None.
    dtype: that of the conditions where None.
    """

    label: str
    timed: str
    backend: str
    target: str | None = None
    dtype: str | None = None

    @property
    def is_ceiling(self) -> bool:
        """Whether it is what a device can do at most."""
        return self.timed not in (LIBRARY, CALL, KERNEL)


class Conditions(NamedTuple):
    """What is measured in one comparison.

    threads: all where None.
    environment: variables that everybody is started with.
    """

    kernel: str
    dtype: str
    threads: int | None = None
    environment: tuple[tuple[str, str], ...] = ()


class Entry(NamedTuple):
    """A contender at one size, under the conditions of its goal: what is timed."""

    contender: Contender
    size: int

    def dtype(self, conditions: Conditions) -> str:
        """Its number format."""
        return self.contender.dtype or conditions.dtype

    def statement(self, conditions: Conditions) -> str | None:
        """The Python statement that is timed; None where the kernel is."""
        if self.contender.timed == LIBRARY:
            return registry.problem(conditions.kernel).in_numpy
        if self.contender.timed != CALL:
            return None
        options = {"backend": self.contender.backend, "target": self.contender.target, "threads": conditions.threads}
        given = "".join(f", {name}={value!r}" for name, value in options.items() if value is not None)
        return f"pb.{conditions.kernel}(a, b, out=c{given})"


class Comparison(NamedTuple):
    """The rate of one entry over that of another: of the fastest, where there are several."""

    subject: Entry
    against: tuple[Entry, ...]


@dataclass(frozen=True)
class Goal:
    """A figure that is asked for.

    subject, what, where: how tables name it, as in "avx", "of NumPy", "all n".
    summary: `mean`, the geometric mean of all comparisons; `worst`, the least of them.
    asked: the ratio of rates that is to be reached. With `at_most`, the ratio of times that is not to be exceeded.
        None where the figure is only to be stated.
    owner: the backend whose goal it is; the subject's where None.
    """

    conditions: Conditions
    subject: str
    what: str
    where: str
    comparisons: tuple[Comparison, ...]
    asked: float | None
    summary: str = "mean"
    at_most: bool = False
    owner: str | None = None

    @property
    def backend(self) -> str:
        """Whose goal it is."""
        return self.owner or self.comparisons[0].subject.contender.backend

    def entries(self) -> Iterator[Entry]:
        """Everything that has to be timed for it."""
        for subject, against in self.comparisons:
            yield subject
            yield from against


NUMPY = Contender("numpy", LIBRARY, "numpy")
MKL = Contender("mkl", KERNEL, "mkl")  # its launch: the checks of the Python functions would count against it
ONEDNN = Contender("onednn", KERNEL, "onednn")
AVX = Contender("avx", CALL, "avx")
AMX = Contender("avx amx", CALL, "avx", "amx")
AVX_AVX512 = Contender("avx avx512", CALL, "avx", "avx512")
AVX_AVX2 = Contender("avx avx2", CALL, "avx", "avx2")
CPP = Contender("cpp", CALL, "cpp")
OPENMP = Contender("openmp", CALL, "openmp")
NUMBA_CPU = Contender("numba_cpu", CALL, "numba_cpu", "cpu")
NUMBA_CPU_AMX = Contender("numba_cpu amx", CALL, "numba_cpu", "amx")
OPENCL = Contender("opencl", KERNEL, "opencl", "intel-cpu")
POCL = Contender("pocl", KERNEL, "opencl", "pocl")
SYCL = Contender("sycl", KERNEL, "sycl", "intel-cpu")
SYCL_AMX = Contender("sycl amx", KERNEL, "sycl", "amx")
CUDA = Contender("cuda", KERNEL, "cuda")
NUMBA_CUDA = Contender("numba_cuda", KERNEL, "numba_cuda")
CUBLAS = Contender("cublas", KERNEL, "cublas")
PEAK = Contender("FMA peak", MULTIPLY_ADDS, "avx")
PEAK_OF_FORMAT = Contender("peak of the format", MULTIPLY_ADDS, "avx")
STREAMED = Contender("NT ceiling", STREAMED_ADDITIONS, "avx")
DEVICE_COPY = Contender("device copy", COPIES, "cuda")
_HELD_TO_AVX2 = (("OPENBLAS_CORETYPE", "Haswell"),)


def end_to_end(contender: Contender) -> Contender:
    """The same backend and target through the Python function."""
    return replace(contender, label=f"{contender.label} e2e", timed=CALL)


def in_float32(contender: Contender) -> Contender:
    """The same backend and target in float32, whatever the conditions say."""
    return replace(contender, label=f"{contender.label} float32", dtype="float32")


def goals(
    dtypes: Sequence[str] = DTYPES,
    sizes: Sequence[int] = SIZES,
    elements: int = ELEMENTS,
    kernels: Sequence[str] = ("matmul", "vecadd"),
    threads: int | None = None,
) -> list[Goal]:
    """All goals, at these sizes of matmul and with vectors of so many elements for those that are to be large.

    In the narrow formats `NARROW_SIZES` stand for `SIZES`.
    """
    wide, narrow = ([each for each in dtypes if each in group] for group in (WIDE, NARROW))
    found: list[Goal] = []
    if "matmul" in kernels:
        for dtype in wide:
            found += _matmul(Conditions("matmul", dtype, threads), sizes)
        for dtype in narrow:
            found += _narrow_matmul(Conditions("matmul", dtype, threads), sizes)
    if "vecadd" in kernels:
        for dtype in wide[:1]:  # float32 where it is among them
            found += _vecadd(Conditions("vecadd", dtype, threads), elements)
        for dtype in narrow:
            found += _narrow_vecadd(Conditions("vecadd", dtype, threads), elements)
    gpu_sizes = [size for size in GPU_SIZES if tuple(sizes) == SIZES] or [max(sizes)]
    for dtype in wide:
        found += _gpu(dtype, kernels, gpu_sizes, GPU_ELEMENTS if elements == ELEMENTS else elements)
    return found


def _speed(
    conditions: Conditions,
    sizes: Sequence[int],
    subject: Contender,
    against: tuple[Contender, ...],
    what: str,
    asked: float,
    least: int = 0,
    **more: Any,
) -> Iterator[Goal]:
    """One contender against the fastest of others at all sizes, from the least on; nothing where none is left."""
    chosen = [size for size in sizes if size >= least]
    where = f"n >= {least}" if least else f"{len(chosen)} sizes"
    comparisons = tuple(
        Comparison(Entry(subject, size), tuple(Entry(other, size) for other in against)) for size in chosen
    )
    if chosen:
        yield Goal(conditions, subject.label, what, where, comparisons, asked, **more)


def _matmul(conditions: Conditions, sizes: Sequence[int]) -> Iterator[Goal]:
    kernel, called = (0.95, 0.85) if conditions.dtype == "float32" else (0.90, 0.80)
    speed = partial(_speed, conditions, sizes)
    yield from speed(AVX, (NUMPY, MKL), "of the best library", 1.00)
    yield from speed(AVX, (NUMPY,), "of NumPy", 1.15)
    yield from _one_thread(conditions._replace(threads=1), sizes)
    held = conditions._replace(environment=_HELD_TO_AVX2)
    yield from _speed(held, sizes, AVX_AVX2, (NUMPY,), "of NumPy held to AVX2", 1.00)
    yield from speed(OPENMP, (NUMPY,), "of NumPy", 0.90)
    for device in OPENCL, SYCL:
        yield from speed(device, (NUMPY,), "of NumPy, kernel", kernel, least=512)
        yield from speed(end_to_end(device), (NUMPY,), "of NumPy, end to end", called, least=1000)
        worst = {"summary": "worst", "at_most": True}
        yield from speed(end_to_end(device), (device,), "times its kernel", 1.15, least=1024, **worst)
    yield from speed(POCL, (NUMPY,), "of NumPy, kernel", 0.40, least=512)
    yield from speed(NUMBA_CPU, (NUMPY,), "of NumPy", 0.50, least=512)
    for contender in AVX, OPENMP, CPP, OPENCL, POCL, SYCL, NUMBA_CPU:
        yield from _neighbours(contender, conditions, sizes)


def _narrow_matmul(conditions: Conditions, sizes: Sequence[int]) -> Iterator[Goal]:
    """The matrix unit against the libraries. Without it numbers are widened, and the target is held to its float32."""
    sizes = NARROW_SIZES if tuple(sizes) == SIZES else sizes
    speed = partial(_speed, conditions, sizes)
    asked, least = {"bfloat16": (1.10, 0), "float16": (1.50, 1024), "int8": (1.00, 0)}[conditions.dtype]
    yield from speed(AMX, (MKL, ONEDNN), "of the best library", asked, least)
    if conditions.dtype == "int8":
        return
    if conditions.dtype == "bfloat16":
        large = [size for size in _LARGE if size in sizes] or [max(sizes)]
        peak = tuple(Comparison(Entry(AMX, size), (Entry(PEAK_OF_FORMAT, size),)) for size in large)
        where = f"n = {', '.join(map(str, large))}"
        yield Goal(conditions, AMX.label, "of the peak of the format", where, peak, 0.45, "worst")
        yield from _neighbours(AMX, conditions, sizes, asked=0.85)
        for contender, ratio in (SYCL_AMX, 0.50), (NUMBA_CPU_AMX, 0.60):
            yield from speed(contender, (AMX,), "of avx amx", ratio)
    for contender in AVX_AVX512, OPENMP, CPP, OPENCL, POCL, SYCL, NUMBA_CPU:
        yield from speed(contender, (in_float32(contender),), "of its float32", 0.95)


def _one_thread(conditions: Conditions, sizes: Sequence[int]) -> Iterator[Goal]:
    """What one thread makes of the multiply-adds that its registers could do; of others than avx it is only stated."""
    size = _ONE_THREAD_AT if _ONE_THREAD_AT in sizes else max(sizes)
    for owner, contender, asked in ("avx", AVX, 0.80), ("avx", NUMPY, None), ("avx", MKL, None), ("cpp", CPP, None):
        comparison = Comparison(Entry(contender, size), (Entry(PEAK, size),))
        label = f"{contender.label} 1 thread"
        yield Goal(conditions, label, "of the FMA peak", f"n = {size}", (comparison,), asked, owner=owner)


def _neighbours(
    contender: Contender, conditions: Conditions, sizes: Sequence[int], asked: float = 0.90
) -> Iterator[Goal]:
    """A size one off from a round one is not much slower per operation."""
    comparisons = tuple(
        Comparison(Entry(contender, near), (Entry(contender, size),))
        for size in sizes
        if _NEIGHBOURS_FROM <= size <= _NEIGHBOURS_TO and size % _ROUND == 0
        for near in (size - 1, size + 1)
    )
    if comparisons:
        where = f"n from {_NEIGHBOURS_FROM}"
        yield Goal(conditions, contender.label, "of the rate at n, at n ± 1", where, comparisons, asked, "worst")


def _against(
    conditions: Conditions, subject: Contender, other: Contender, size: int, what: str, asked: float | None
) -> Goal:
    """The goal of one contender at one size against one other."""
    where = f"n = {size}" if conditions.kernel == "matmul" else _power_of_two(size)
    comparison = Comparison(Entry(subject, size), (Entry(other, size),))
    return Goal(conditions, subject.label, what, where, (comparison,), asked)


def _vecadd(conditions: Conditions, elements: int) -> Iterator[Goal]:
    yield _against(conditions, AVX, STREAMED, elements, "of the non-temporal ceiling", 0.95)
    yield _against(conditions, AVX, NUMPY, elements, "of NumPy", 2.3)
    # OpenCL C and SYCL have a built-in for non-temporal stores, Numba an intrinsic of one's own; of OpenMP's clause
    # `nontemporal` g++ makes ordinary stores.
    for contender, asked in (OPENMP, 0.70), (OPENCL, 0.90), (POCL, 0.90), (SYCL, 0.90), (NUMBA_CPU, 0.90):
        yield _against(conditions, contender, STREAMED, elements, "of the non-temporal ceiling", asked)
    a_call = _against(conditions, AVX, NUMPY, FEW_ELEMENTS, "times numpy.add a call", 4.0)
    yield replace(a_call, where=f"n = {FEW_ELEMENTS}", at_most=True)


def _narrow_vecadd(conditions: Conditions, elements: int) -> Iterator[Goal]:
    """Half the bytes an element: nearly twice the elements a second."""
    if conditions.dtype == "int8":
        return
    for contender in AVX, OPENMP, CPP, OPENCL, POCL, SYCL, NUMBA_CPU:
        asked = 1.9 if contender is AVX else 1.7
        yield _against(conditions, contender, in_float32(contender), elements, "times its float32", asked)


def _gpu(dtype: str, kernels: Sequence[str], sizes: Sequence[int], elements: int) -> Iterator[Goal]:
    if "matmul" in kernels:
        conditions = Conditions("matmul", dtype)
        for size in sizes:
            asked = 0.90 if dtype == "float32" else None
            yield _against(conditions, CUDA, CUBLAS, size, "of cuBLAS without TF32", asked)
            yield _against(conditions, NUMBA_CUDA, CUDA, size, "of cuda", 0.50)
    if "vecadd" in kernels and dtype == "float32":
        yield _against(Conditions("vecadd", dtype), CUDA, DEVICE_COPY, elements, "of a copy within its memory", 0.95)


def _power_of_two(number: int) -> str:
    exponent = number.bit_length() - 1
    return f"n = 2^{exponent}" if number == 2**exponent else f"n = {number}"
