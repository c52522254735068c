"""Who is timed for a goal, under which conditions, and at which sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from string import ascii_lowercase
from typing import NamedTuple

from py_backends import registry
from py_backends.results.report import COPIES, MULTIPLY_ADDS, READS, STREAMED_COPIES
from py_backends.results.report import STREAMED as STREAMED_ADDITIONS

Size = int | tuple[int, ...]
"""Of all dimensions, or of each."""
LIBRARY, CALL, KERNEL = "library", "call", "kernel"
"""What is timed: NumPy's function, `pb.matmul`, launch and wait on the device. A ceiling is timed by its kind."""


@dataclass(frozen=True)
class Contender:
    """Somebody who is timed, or a ceiling.

    label: its name in tables.
    timed: `LIBRARY`, `CALL`, `KERNEL`, or the kind of a ceiling (`harness.roofs`).
    backend: whose it is; of a ceiling, on whose device.
    target: the first available one where None.
    dtype: that of the conditions where None.
    variant: its default one where None.
    """

    label: str
    timed: str
    backend: str
    target: str | None = None
    dtype: str | None = None
    variant: str | None = None

    @property
    def is_ceiling(self) -> bool:
        """Whether it is what a device can do at most."""
        return self.timed not in (LIBRARY, CALL, KERNEL)


class Conditions(NamedTuple):
    """What is measured in one comparison.

    threads: all where None.
    environment: variables that everybody is started with.
    skew: the share of elements that the inputs have in one place, of a problem that can draw them so (`skewed`).
    """

    kernel: str
    dtype: str
    threads: int | None = None
    environment: tuple[tuple[str, str], ...] = ()
    skew: float = 0.0


class Entry(NamedTuple):
    """A contender at one size, under the conditions of its goal: what is timed."""

    contender: Contender
    size: Size

    def dtype(self, conditions: Conditions) -> str:
        """Its number format."""
        return self.contender.dtype or conditions.dtype

    def statement(self, conditions: Conditions) -> str | None:
        """The Python statement that is timed; None where the kernel is."""
        if self.contender.timed == LIBRARY:
            return registry.problem(conditions.kernel).in_numpy
        if self.contender.timed != CALL:
            return None
        who = self.contender
        options = {"backend": who.backend, "variant": who.variant, "target": who.target, "threads": conditions.threads}
        given = "".join(f", {name}={value!r}" for name, value in options.items() if value is not None)
        problem = registry.problem(conditions.kernel)
        arrays = ascii_lowercase[: len(problem.inputs) + 1]
        if isinstance(self.size, tuple):
            given += "".join(f", {name}={self.size[problem.parameters.index(name)]}" for name in problem.numbers)
        return f"pb.{conditions.kernel}({', '.join(arrays[:-1])}, out={arrays[-1]}{given})"


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
LECTURE_OF_OPENMP = Contender("openmp lecture", CALL, "openmp", variant="lecture")
STDPAR = Contender("stdpar", CALL, "stdpar")
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
READ = Contender("read ceiling", READS, "avx")
COPIED = Contender("copy ceiling", STREAMED_COPIES, "avx")
DEVICE_COPY = Contender("device copy", COPIES, "cuda")
DEVICE_PEAK = Contender("device peak", MULTIPLY_ADDS, "cuda")


def end_to_end(contender: Contender) -> Contender:
    """The same backend and target through the Python function."""
    return replace(contender, label=f"{contender.label} e2e", timed=CALL)


def in_float32(contender: Contender) -> Contender:
    """The same backend and target in float32, whatever the conditions say."""
    return replace(contender, label=f"{contender.label} float32", dtype="float32")
