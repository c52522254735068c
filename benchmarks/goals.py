"""What is asked of the tuned kernels: every ratio, by whom it is measured, against whom, and at which sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

SIZES = (64, 127, 256, 512, 1000, 1024, 2048, 4096)
"""Of square matrices; a geometric mean is over these, unless its goal says otherwise."""
ELEMENTS = 2**26
"""Of the vectors that are far larger than caches; a ceiling of memory needs that."""
FEW_ELEMENTS = 1024
"""Of the vectors that show what a call costs."""
GPU_SIZES, GPU_ELEMENTS = (4096, 8192), 2**28
DTYPES = ("float32", "float64")
_ONE_THREAD_AT = 2048
_NEIGHBOURS_FROM, _NEIGHBOURS_TO, _ROUND = 256, 2048, 8
"""Sizes whose neighbours are measured too: multiples of 8 in this range. Above it three runs take too long."""


@dataclass(frozen=True)
class Contender:
    """Somebody who is timed, in a process of its own.

    label: its name in tables.
    way: `library` (NumPy's function), `call` (`pb.matmul`), `kernel` (launch and wait on the device), or a ceiling:
        `arithmetic`, `memory`, `device copy`.
    backend: whose targets say whether it is there; of a ceiling, the backend that it is a ceiling for.
    target: the first available one where None.
    threads: as many as the run has where None.
    environment: variables that its process is started with.
    """

    label: str
    way: str
    backend: str
    target: str | None = None
    threads: int | None = None
    environment: tuple[tuple[str, str], ...] = ()


class Entry(NamedTuple):
    """A contender at one size: what is timed."""

    contender: Contender
    kernel: str
    dtype: str
    size: int


class Comparison(NamedTuple):
    """The rate of one entry over that of another: of the fastest, where there are several."""

    subject: Entry
    against: tuple[Entry, ...]


@dataclass(frozen=True)
class Goal:
    """A figure that is asked for, of one kernel and dtype.

    backend: whose goal it is.
    subject, what, where: how tables name it, as in "avx", "of NumPy", "all n".
    summary: `mean`, the geometric mean of all comparisons; `worst`, the least of them.
    asked: the ratio of rates that is to be reached. With `at_most`, the ratio of times that is not to be exceeded.
        None where the figure is only to be stated.
    """

    backend: str
    subject: str
    what: str
    where: str
    comparisons: tuple[Comparison, ...]
    asked: float | None
    summary: str = "mean"
    at_most: bool = False

    @property
    def kernel(self) -> str:
        return self.comparisons[0].subject.kernel

    @property
    def dtype(self) -> str:
        return self.comparisons[0].subject.dtype

    def entries(self) -> Iterator[Entry]:
        """Everything that has to be timed for it."""
        for subject, against in self.comparisons:
            yield subject
            yield from against


NUMPY = Contender("numpy", "library", "numpy")
NUMPY_AVX2 = Contender("numpy avx2", "library", "numpy", environment=(("OPENBLAS_CORETYPE", "Haswell"),))
MKL = Contender("mkl", "kernel", "mkl")  # its launch: the checks of the Python functions would count against it
AVX = Contender("avx", "call", "avx")
AVX_ONE = replace(AVX, label="avx 1 thread", threads=1)
NUMPY_ONE = replace(NUMPY, label="numpy 1 thread", threads=1)
MKL_ONE = replace(MKL, label="mkl 1 thread", threads=1)
PEAK_ONE = Contender("FMA peak 1 thread", "arithmetic", "avx", threads=1)
AVX_AVX2 = replace(AVX, label="avx avx2", target="avx2")
CPP = Contender("cpp", "call", "cpp")
OPENMP = Contender("openmp", "call", "openmp")
NUMBA_CPU = Contender("numba_cpu", "call", "numba_cpu")
OPENCL = Contender("opencl", "kernel", "opencl", "intel-cpu")
POCL = Contender("pocl", "kernel", "opencl", "pocl")
SYCL = Contender("sycl", "kernel", "sycl", "intel-cpu")
STREAMED = Contender("NT ceiling", "memory", "avx")
CUDA = Contender("cuda", "kernel", "cuda")
NUMBA_CUDA = Contender("numba_cuda", "kernel", "numba_cuda")
CUBLAS = Contender("cublas", "kernel", "cublas")
DEVICE_COPY = Contender("device copy", "device copy", "cuda")


def end_to_end(contender: Contender) -> Contender:
    """The same backend and target through the Python function."""
    return replace(contender, label=f"{contender.label} e2e", way="call")


def goals(
    dtypes: Sequence[str] = DTYPES,
    sizes: Sequence[int] = SIZES,
    elements: int = ELEMENTS,
    kernels: Sequence[str] = ("matmul", "vecadd"),
) -> list[Goal]:
    """All goals, at these sizes of matmul and with vectors of so many elements for those that are to be large."""
    found: list[Goal] = []
    if "matmul" in kernels:
        for dtype in dtypes:
            found += _matmul(dtype, sizes)
    if "vecadd" in kernels:
        found += _vecadd("float32" if "float32" in dtypes else dtypes[0], elements)
    for dtype in dtypes:
        found += _gpu(dtype, kernels, [size for size in GPU_SIZES if tuple(sizes) == SIZES] or [max(sizes)], elements)
    return found


def _matmul(dtype: str, sizes: Sequence[int]) -> Iterator[Goal]:
    offload = (0.95, 0.85) if dtype == "float32" else (0.90, 0.80)

    def speed(
        subject: Contender, against: tuple[Contender, ...], what: str, asked: float, least: int = 0, **more: Any
    ) -> list[Goal]:
        chosen = [size for size in sizes if size >= least]
        where = f"n >= {least}" if least else f"{len(chosen)} sizes"
        if not chosen:
            return []
        comparisons = tuple(
            Comparison(
                Entry(subject, "matmul", dtype, size),
                tuple(Entry(other, "matmul", dtype, size) for other in against),
            )
            for size in chosen
        )
        return [Goal(subject.backend, subject.label, what, where, comparisons, asked, **more)]

    yield from speed(AVX, (NUMPY, MKL), "of the best library", 1.00)
    yield from speed(AVX, (NUMPY,), "of NumPy", 1.15)
    yield from _one_thread(dtype, sizes)
    yield from speed(AVX_AVX2, (NUMPY_AVX2,), "of NumPy held to AVX2", 1.00)
    yield from speed(OPENMP, (NUMPY,), "of NumPy", 0.90)
    for device in OPENCL, SYCL:
        yield from speed(device, (NUMPY,), "of NumPy, kernel", offload[0], least=512)
        yield from speed(end_to_end(device), (NUMPY,), "of NumPy, end to end", offload[1], least=1000)
        worst = {"summary": "worst", "at_most": True}
        yield from speed(end_to_end(device), (device,), "times its kernel", 1.15, least=1024, **worst)
    yield from speed(POCL, (NUMPY,), "of NumPy, kernel", 0.40, least=512)
    yield from speed(NUMBA_CPU, (NUMPY,), "of NumPy", 0.50, least=512)
    for contender in AVX, OPENMP, CPP, OPENCL, POCL, SYCL, NUMBA_CPU:
        yield from _neighbours(contender, dtype, sizes)


def _one_thread(dtype: str, sizes: Sequence[int]) -> Iterator[Goal]:
    """What one thread makes of the multiply-adds that its registers could do; of others than avx it is only stated."""
    size = _ONE_THREAD_AT if _ONE_THREAD_AT in sizes else max(sizes)
    peak = Entry(PEAK_ONE, "matmul", dtype, size)
    for owner, contender, asked in (AVX, AVX_ONE, 0.80), (AVX, NUMPY_ONE, None), (AVX, MKL_ONE, None), (CPP, CPP, None):
        comparison = Comparison(Entry(contender, "matmul", dtype, size), (peak,))
        yield Goal(owner.backend, contender.label, "of the FMA peak", f"n = {size}", (comparison,), asked)


def _neighbours(contender: Contender, dtype: str, sizes: Sequence[int]) -> Iterator[Goal]:
    """A size one off from a round one is no slower per operation than by a tenth."""
    comparisons = tuple(
        Comparison(Entry(contender, "matmul", dtype, near), (Entry(contender, "matmul", dtype, size),))
        for size in sizes
        if _NEIGHBOURS_FROM <= size <= _NEIGHBOURS_TO and size % _ROUND == 0
        for near in (size - 1, size + 1)
    )
    if comparisons:
        where = f"n from {_NEIGHBOURS_FROM}"
        yield Goal(
            contender.backend, contender.label, "of the rate at n, at n ± 1", where, comparisons, 0.90, summary="worst"
        )


def _vecadd(dtype: str, elements: int) -> Iterator[Goal]:
    where = _power_of_two(elements)

    def against(subject: Contender, other: Contender, what: str, asked: float) -> Goal:
        comparison = Comparison(Entry(subject, "vecadd", dtype, elements), (Entry(other, "vecadd", dtype, elements),))
        return Goal(subject.backend, subject.label, what, where, (comparison,), asked)

    yield against(AVX, STREAMED, "of the non-temporal ceiling", 0.95)
    yield against(AVX, NUMPY, "of NumPy", 2.3)
    # OpenCL C and SYCL have a built-in for non-temporal stores, Numba an intrinsic of one's own; of OpenMP's clause
    # `nontemporal` g++ makes ordinary stores.
    for contender, asked in (OPENMP, 0.70), (OPENCL, 0.90), (POCL, 0.90), (SYCL, 0.90), (NUMBA_CPU, 0.90):
        yield against(contender, STREAMED, "of the non-temporal ceiling", asked)
    call = Comparison(Entry(AVX, "vecadd", dtype, FEW_ELEMENTS), (Entry(NUMPY, "vecadd", dtype, FEW_ELEMENTS),))
    yield Goal("avx", "avx", "times numpy.add a call", f"n = {FEW_ELEMENTS}", (call,), 4.0, at_most=True)


def _gpu(dtype: str, kernels: Sequence[str], sizes: Sequence[int], elements: int) -> Iterator[Goal]:
    def at(contender: Contender, other: Contender, kernel: str, size: int, what: str, asked: float | None) -> Goal:
        where = f"n = {size}" if kernel == "matmul" else _power_of_two(size)
        comparison = Comparison(Entry(contender, kernel, dtype, size), (Entry(other, kernel, dtype, size),))
        return Goal(contender.backend, contender.label, what, where, (comparison,), asked)

    if "matmul" in kernels:
        for size in sizes:
            yield at(CUDA, CUBLAS, "matmul", size, "of cuBLAS without TF32", 0.90 if dtype == "float32" else None)
            yield at(NUMBA_CUDA, CUDA, "matmul", size, "of cuda", 0.50)
    if "vecadd" in kernels and dtype == "float32":
        size = GPU_ELEMENTS if elements == ELEMENTS else elements
        yield at(CUDA, DEVICE_COPY, "vecadd", size, "of a copy of 4 GiB", 0.95)


def _power_of_two(number: int) -> str:
    exponent = number.bit_length() - 1
    return f"n = 2^{exponent}" if number == 2**exponent else f"n = {number}"
