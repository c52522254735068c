"""What is asked of the tuned kernels: every ratio, by whom it is measured, against whom, and at which sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from string import ascii_lowercase
from typing import Any, NamedTuple

from py_backends import registry
from py_backends.results.report import COPIES, MULTIPLY_ADDS, READS, STREAMED_COPIES
from py_backends.results.report import STREAMED as STREAMED_ADDITIONS

SIZES = (64, 127, 256, 512, 1000, 1024, 2048, 4096)
"""Of square matrices; a geometric mean is over these, unless its goal says otherwise."""
ELEMENTS = 2**26
"""Of the vectors that are far larger than caches; a ceiling of memory needs that."""
FEW_ELEMENTS = 1024
"""Of the vectors that show what a call costs."""
LENGTHS = (1000, 10**4, 10**5, 10**6, 10**7)
"""Of the vectors of dot, in and out of the caches, beside the largest."""
SHAPES = ((5000, 3001), (4096, 4096), (8192, 8192))
"""Of the matrices that are transposed: with rows that begin anywhere, and rows that compete for places in caches."""
GRID, STEPS = (4096, 4096), 64
"""Of the matrix and of the steps of heat. It fits no cache."""
SMALL_GRID = (512, 512)
"""Of heat in the caches."""
BODIES = 16_384
"""Of nbody, as many points as bodies."""
ATTENTION = (4096, 64, 4096)
"""Of the queries, their width and the keys of attention."""
GPU_SIZES, GPU_ELEMENTS = (4096, 8192), 2**28
BODIES_ON_GPUS = (131_072, 1024)
"""Points enough to fill a GPU with a work item each, and bodies few enough for a reference in seconds."""
NARROW_SIZES = (512, 1000, 1024, 2048, 4096)
"""In place of `SIZES` in the narrow formats."""
WIDE, NARROW = ("float32", "float64"), ("bfloat16", "float16", "int8")
DTYPES = WIDE + NARROW
_ONE_THREAD_AT = 2048
_LARGE = (1024, 2048)
"""Where a matrix unit is held to its peak."""
_NEIGHBOURS_FROM, _NEIGHBOURS_TO, _ROUND = 256, 2048, 8
"""Sizes whose neighbours are measured too: multiples of 8 in this range. Above it three runs take too long."""


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
    """

    kernel: str
    dtype: str
    threads: int | None = None
    environment: tuple[tuple[str, str], ...] = ()


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
_HELD_TO_AVX2 = (("OPENBLAS_CORETYPE", "Haswell"),)
_ONEDNN_3_2 = (("PY_BACKENDS_ONEDNN", "build/onednn-3.2/lib/libdnnl.so.3"),)
"""An older oneDNN, which multiplied bfloat16 faster at n = 512. `make benchmarks` installs it outside the environment:
both wheels have files of the same names."""


def end_to_end(contender: Contender) -> Contender:
    """The same backend and target through the Python function."""
    return replace(contender, label=f"{contender.label} e2e", timed=CALL)


def in_float32(contender: Contender) -> Contender:
    """The same backend and target in float32, whatever the conditions say."""
    return replace(contender, label=f"{contender.label} float32", dtype="float32")


Places = tuple[str, list[tuple[Size, Size]]]
"""How a goal says where it holds, and its pairs of sizes: of the subject, and of those that it is compared with."""


def _at(*wanted: Size) -> Callable[[Sequence[Size]], Places]:
    """Those of these sizes that there are; none of others."""

    def at(sizes: Sequence[Size]) -> Places:
        chosen = [size for size in sizes if size in wanted]
        named = ("x".join(map(str, size)) if isinstance(size, tuple) else str(size) for size in chosen)
        return f"n = {', '.join(named)}", [(size, size) for size in chosen]

    return at


def _every(sizes: Sequence[Any], least: int = 0) -> Places:
    """All sizes, from the least on."""
    chosen = [size for size in sizes if not least or size >= least]
    return f"n >= {least}" if least else f"{len(chosen)} sizes", [(size, size) for size in chosen]


def _only(sizes: Sequence[Any], wanted: Sequence[int]) -> Places:
    """Those of these sizes that there are, else the largest one."""
    chosen = [size for size in wanted if size in sizes] or [max(sizes)]
    return f"n = {', '.join(map(str, chosen))}", [(size, size) for size in chosen]


def _neighbours(sizes: Sequence[int]) -> Places:
    """A size one off from a round one is not much slower per operation."""
    round_ones = [size for size in sizes if _NEIGHBOURS_FROM <= size <= _NEIGHBOURS_TO and size % _ROUND == 0]
    return f"n from {_NEIGHBOURS_FROM}", [(size + off, size) for size in round_ones for off in (-1, 1)]


def _passes(sizes: Sequence[tuple[int, ...]]) -> Places:
    """All steps of heat, against as many passes at a ceiling of memory."""
    large = sizes[0]
    return f"{STEPS} steps", [((*large, STEPS), (*large, 1))]


def _steps(sizes: Sequence[tuple[int, ...]]) -> Places:
    """All steps of heat on the large matrix."""
    large = *sizes[0], STEPS
    return f"{STEPS} steps", [(large, large)]


def _out_of_caches(sizes: Sequence[tuple[int, ...]]) -> Places:
    """A step of heat on a large matrix, against one on a matrix that caches hold."""
    large, *small = sizes
    return f"{STEPS} steps", [((*large, STEPS), (*each, STEPS)) for each in small]


def _few(_: Sequence[int]) -> Places:
    """Vectors that show what a call costs, whatever the others are."""
    return f"n = {FEW_ELEMENTS}", [(FEW_ELEMENTS, FEW_ELEMENTS)]


def _vectors(sizes: Sequence[int]) -> Places:
    """Vectors of so many elements."""
    (elements,) = sizes
    exponent = elements.bit_length() - 1
    return f"n = 2^{exponent}" if elements == 2**exponent else f"n = {elements}", [(elements, elements)]


_large = partial(_only, wanted=_LARGE)
_largest = partial(_only, wanted=())
_from_512, _from_1000, _from_1024 = (partial(_every, least=least) for least in (512, 1000, 1024))


@dataclass(frozen=True)
class Line:
    """A line of the tables below: the goals of one contender, in each of these number formats.

    against, what, ratio: as in `Goal`, whose comparisons are with the fastest of these.
    at: where, of the sizes that there are.
    under: what its conditions differ in.
    more: further fields of `Goal`.
    """

    dtypes: Sequence[str]
    subject: Contender
    against: Sequence[Contender]
    what: str
    ratio: float | None
    at: Callable[[Sequence[Any]], Places] = _every
    under: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)

    def goals(self, conditions: Conditions, sizes: Sequence[Size]) -> Iterator[Goal]:
        """Nothing in another number format, or where none of the sizes is one of its own."""
        where, pairs = self.at(sizes)
        if conditions.dtype not in self.dtypes or not pairs:
            return
        comparisons = tuple(
            Comparison(Entry(self.subject, size), tuple(Entry(other, near) for other in self.against))
            for size, near in pairs
        )
        fields = {"subject": self.subject.label, "asked": self.ratio, **self.more}
        yield Goal(conditions._replace(**self.under), what=self.what, where=where, comparisons=comparisons, **fields)


def _on_one_thread(who: Contender, ratio: float | None, owner: str) -> Line:
    """What one thread makes of the multiply-adds that its registers could do; of others than avx it is only stated."""
    at, more = partial(_only, wanted=(_ONE_THREAD_AT,)), {"subject": f"{who.label} 1 thread", "owner": owner}
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


def _of_directives(at: Callable[[Sequence[Any]], Places] = _every) -> Line:
    """The standard's words for a loop on threads, against OpenMP's."""
    return Line(WIDE, STDPAR, (LECTURE_OF_OPENMP,), "of openmp's lecture", 0.75, at)


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
_HALVES = ("bfloat16", "float16")
_WORST_TIME = {"summary": "worst", "at_most": True}
_MATMUL = (
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
    *(Line(_HALVES, who, (in_float32(who),), "of its float32", 0.95) for who in (AVX_AVX512, *_ON_CPUS[1:])),
    _of_directives(partial(_only, wanted=(1024,))),
)
_VECADD = (
    Line(WIDE, AVX, (STREAMED,), "of the non-temporal ceiling", 0.95, _vectors),
    Line(WIDE, AVX, (NUMPY,), "of NumPy", 2.3, _vectors),
    # OpenCL C and SYCL have a built-in for non-temporal stores, Numba an intrinsic of one's own; of OpenMP's clause
    # `nontemporal` g++ makes ordinary stores.
    Line(WIDE, OPENMP, (STREAMED,), "of the non-temporal ceiling", 0.70, _vectors),
    *(Line(WIDE, who, (STREAMED,), "of the non-temporal ceiling", 0.90, _vectors) for who in _ON_CPUS[3:]),
    Line(WIDE, AVX, (NUMPY,), "times numpy.add a call", 4.0, _few, more={"at_most": True}),
    # Half the bytes an element: nearly twice the elements a second.
    Line(_HALVES, AVX, (in_float32(AVX),), "times its float32", 1.9, _vectors),
    *(Line(_HALVES, who, (in_float32(who),), "times its float32", 1.7, _vectors) for who in _ON_CPUS[1:]),
    _of_directives(_vectors),
)
_DOT = (
    *(Line(WIDE, who, (READ,), "of the read ceiling", 0.90, _largest) for who in (AVX, OPENMP, OPENCL, SYCL)),
    Line(WIDE, NUMBA_CPU, (READ,), "of the read ceiling", 0.85, _largest),
    Line(WIDE, AVX, (NUMPY, MKL), "of the best library", 1.00),
    Line(WIDE, AVX, (NUMPY, MKL), "of the best library, worst", 0.90, more={"summary": "worst"}),
    Line(WIDE, AVX, (NUMPY,), "times numpy.dot a call", 1.1, _at(LENGTHS[0]), more={"at_most": True}),
    _of_directives(_largest),
)
_TRANSPOSE = (
    Line(WIDE, AVX, (COPIED,), "of the copy ceiling at 5000x3001", 0.75, _at(SHAPES[0])),
    Line(WIDE, AVX, (COPIED,), "of the copy ceiling", 0.65, _at(*SHAPES[1:]), more={"summary": "worst"}),
    Line(WIDE, AVX, (NUMPY, MKL), "of the best library", 1.00, more={"summary": "worst"}),
    *(
        Line(WIDE, who, (COPIED,), "of the copy ceiling", 0.50, more={"summary": "worst"})
        for who in (OPENMP, OPENCL, SYCL, NUMBA_CPU)
    ),
    _of_directives(),
)
_HEAT = (
    Line(WIDE, LECTURE_OF_OPENMP, (COPIED,), "of a copy a step", 0.53, _passes),
    *(
        Line(WIDE, who, (COPIED,), "of a copy a step", ratio, _passes)
        for who, ratio in ((AVX, 1.8), (OPENMP, 1.4), (OPENCL, 1.2), (SYCL, 1.2), (NUMBA_CPU, None))
    ),
    # Either of the two is asked of opencl and sycl.
    *(Line(WIDE, who, (who,), "of its rate in caches", 0.70, _out_of_caches) for who in (OPENCL, SYCL)),
    _of_directives(_steps),
)
_NBODY = (
    # avx has 17 instructions for a register of pairs in float32. 12 of them multiply. The others are subtractions, the
    # estimate of a root and a minimum, which many CPUs compute beside these. A pair counts as 20 operations, 12 FMAs as
    # 24. So 20/24 of the FMA peak are the most, of which 0.75 are asked. In float64 there are three more.
    Line(("float32",), AVX, (PEAK,), "of the FMA peak", 0.62),
    Line(("float64",), AVX, (PEAK,), "of the FMA peak", 0.50),
    Line(WIDE, OPENMP, (AVX,), "of avx", 0.30),
    *(Line(WIDE, who, (AVX,), "of avx", 0.60) for who in (OPENCL, SYCL)),
    Line(WIDE, NUMBA_CPU, (AVX,), "of avx", None),
    _of_directives(),
)
_ATTENTION = (
    # Asked are 0.70 of the rate of its own matmul at n = 1024, which reaches about 0.85 of the peak.
    Line(WIDE, AVX, (PEAK,), "of the FMA peak", 0.60),
    Line(("float32",), AVX, (MKL, ONEDNN), "of the best library in three calls", 1.1),
    Line(("float64",), AVX, (MKL,), "of the best library in three calls", 1.1),
    *(Line(WIDE, who, (AVX,), "of avx", 0.70) for who in (OPENCL, SYCL)),
    *(Line(WIDE, who, (AVX,), "of avx", 0.50) for who in (OPENMP, NUMBA_CPU)),
    Line(("bfloat16",), AMX, (in_float32(AVX),), "times its float32", 2.0),
    _of_directives(),
)
_MEMORY_ON_GPUS = (Line(WIDE, CUDA, (DEVICE_COPY,), "of a copy within its memory", 0.90),)
_HEAT_ON_GPUS = (Line(WIDE, CUDA, (DEVICE_COPY,), "of a copy a step", 0.80, _passes),)
_NBODY_ON_GPUS = (Line(("float32",), CUDA, (DEVICE_PEAK,), "of the device's peak", 0.50),)
_MATMUL_ON_GPUS = (
    Line(("float32",), CUDA, (CUBLAS,), "of cuBLAS without TF32", 0.90, _largest),
    Line(("float64",), CUDA, (CUBLAS,), "of cuBLAS", 0.80, _largest),
    Line(_HALVES, CUDA, (CUBLAS,), "of cuBLAS", 0.90, _largest),
    Line(("int8",), CUDA, (CUBLAS,), "of cuBLAS", 1.0, _largest),
    Line(WIDE, NUMBA_CUDA, (CUDA,), "of cuda", 0.50, _largest),
)
_VECADD_ON_GPUS = (Line(("float32",), CUDA, (DEVICE_COPY,), "of a copy within its memory", 0.95, _vectors),)


def goals(
    dtypes: Sequence[str] = DTYPES,
    sizes: Sequence[int] = SIZES,
    elements: int = ELEMENTS,
    kernels: Sequence[str] | None = None,
    threads: int | None = None,
) -> list[Goal]:
    """All goals, at these sizes of matmul and with vectors of so many elements for those that are to be large.

    In the narrow formats `NARROW_SIZES` stand for `SIZES`. With other sizes, one matrix is transposed.
    """
    wide, narrow = ([each for each in dtypes if each in group] for group in (WIDE, NARROW))
    usual = tuple(sizes) == SIZES
    on_gpus = [size for size in GPU_SIZES if usual] or [max(sizes)]
    large = GPU_ELEMENTS if elements == ELEMENTS else elements
    asked: list[tuple[Sequence[Line], Conditions, Sequence[Size]]] = [
        *((_MATMUL, Conditions("matmul", dtype, threads), sizes) for dtype in wide),
        *((_MATMUL, Conditions("matmul", dtype, threads), NARROW_SIZES if usual else sizes) for dtype in narrow),
        # float32 where it is among the wide ones
        *((_VECADD, Conditions("vecadd", dtype, threads), [elements]) for dtype in [*wide[:1], *narrow]),
    ]
    lengths = [*(each for each in LENGTHS if each < elements), elements]
    shapes = SHAPES if usual else [(max(sizes), max(sizes) + 1)]
    grids = (GRID, SMALL_GRID) if usual else ((max(sizes), max(sizes)), (min(sizes), min(sizes)))
    for dtype in wide:
        asked += [(_DOT, Conditions("dot", dtype, threads), lengths)]
        asked += [(_TRANSPOSE, Conditions("transpose", dtype, threads), shapes)]
        asked += [(_HEAT, Conditions("heat", dtype, threads), grids)]
        asked += [(_NBODY, Conditions("nbody", dtype, threads), [BODIES if usual else max(sizes)])]
        asked += [(_MEMORY_ON_GPUS, Conditions("dot", dtype), [large])]
        asked += [(_MEMORY_ON_GPUS, Conditions("transpose", dtype), shapes[-1:])]
        asked += [(_HEAT_ON_GPUS, Conditions("heat", dtype), grids[:1])]
        asked += [(_NBODY_ON_GPUS, Conditions("nbody", dtype), [BODIES_ON_GPUS if usual else (max(sizes),) * 2])]
    for dtype in dtypes:
        asked += [(_ATTENTION, Conditions("attention", dtype, threads), [ATTENTION if usual else (max(sizes),) * 3])]
    for dtype in (*wide, *narrow):
        asked += [(_MATMUL_ON_GPUS, Conditions("matmul", dtype), [size]) for size in on_gpus]
    asked += [(_VECADD_ON_GPUS, Conditions("vecadd", dtype), [large]) for dtype in wide]
    return [
        goal
        for lines, conditions, at in asked
        if kernels is None or conditions.kernel in kernels
        for line in lines
        for goal in line.goals(conditions, at)
    ]


KERNELS = tuple(dict.fromkeys(goal.conditions.kernel for goal in goals()))
"""Those that goals are asked of."""
BACKENDS = tuple(dict.fromkeys(goal.backend for goal in goals()))
"""Those that are asked to reach them."""
