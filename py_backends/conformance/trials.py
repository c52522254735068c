"""What a kind of case is, and what a trial is: a case that runs on arrays in guarded memory.

These are data, apart from how they run. A `Kind` protects against one kind of fault. Its cases are either `Trial`s or
`calls.Call`s. `running` puts trials into an arena for a worker; a worker makes calls of the Python function. A trial
has its sizes, its inputs, and what must hold of the result. All trials also check that a kernel leaves guard zones and
inputs alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache, lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from py_backends import registry
from py_backends.conformance.formats import IN_ALL_KINDS, converted, limits
from py_backends.conformance.sizes import whole
from py_backends.contract import Array, Problem, Reference
from py_backends.number_formats import DTYPES
from py_backends.problem import rounded_to
from py_backends.results.check import references_of
from py_backends.results.spec import Sizes

Inputs = list[Array]
Shapes = Sequence[tuple[int, ...]]
"""The shapes of the inputs."""
Draw = Callable[[Shapes, np.dtype[Any], np.random.Generator], Inputs]
"""Makes inputs of given shapes and dtype."""
Values = Callable[[np.dtype[Any]], Sequence[float]]
"""The values that inputs of a dtype are made of."""

SUBNORMALS, OWN_INPUTS = "subnormals", "own-inputs"
"""The names of kinds that need a target that computes with subnormal numbers, and of the one whose inputs the problem
draws."""
_FEW_SIZES = {True: 9, False: 60}
"""With so many sizes a quick and a thorough run try each kind on a target where others cost much."""
_BEARABLE = 80_000
"""How many operations a case may have where each work item is interpreted."""
_BEARABLE_IN_TILES = 3_000_000
"""The same where a tile of them is."""


@dataclass(frozen=True)
class Case:
    """Something to try, which holds or not.

    name: what it is called within its kind.
    sizes: of the kernel.
    thorough: whether a quick run leaves it out.
    dtypes: those in which it is tried.
    """

    name: str
    sizes: Sizes
    _: KW_ONLY
    thorough: bool = field(default=False, repr=False)
    dtypes: tuple[str, ...] = field(default=DTYPES, repr=False)


@dataclass(frozen=True)
class Trial(Case):
    """A case whose result a worker leaves in guarded memory.

    draw: makes its inputs, from a generator that is seeded with the trial's name.
    exact: whether the result must equal the reference. That holds where every operation is exact, in any order, as with
        small whole numbers.
    starts: how many elements after the start of a page each array begins; the last one counts for all further arrays.
    bare: whether arrays are given without the guard zones behind them. A device that knows their lengths then sees
        reads beyond.
    begun: whether the outputs begin with most of the right result in place of NaN.
    """

    draw: Draw
    exact: bool = False
    starts: tuple[int, ...] = (0,)
    bare: bool = False
    begun: bool = False

    def inputs(self, problem: Problem, dtype: np.dtype[Any]) -> Inputs:
        """Its inputs, which are the same for every backend."""
        generator = np.random.default_rng(list(self.name.encode()))
        with np.errstate(all="ignore"):  # numbers too large for a float32 become infinite
            drawn = self.draw(problem.shapes(self.sizes)[: len(problem.inputs)], dtype, generator)
        return with_own_dtypes(problem, self.sizes, dtype, drawn, generator)


def with_own_dtypes(
    problem: Problem, sizes: Sizes, dtype: np.dtype[Any], drawn: Inputs, generator: np.random.Generator
) -> Inputs:
    """Inputs that were drawn, but what has a dtype of its own, such as indices: only its problem can draw that."""
    if problem.one_dtype:
        return drawn
    own = drawn_by(problem, sizes, dtype, generator)
    return [array if problem.own_dtype(at) is None else own[at] for at, array in enumerate(drawn)]


def drawn_by(problem: Problem, sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Inputs as a comparison has them."""
    with blaming(problem, sizes):
        drawn = zip(problem.draw(sizes, dtype, generator), problem.array_dtypes(dtype), strict=False)
        return [rounded_to(of, np.asarray(array)) for array, of in drawn]


AnyCase = TypeVar("AnyCase", bound=Case)
"""A trial or a call. All cases of a kind are one or the other."""


@dataclass(frozen=True)
class Kind(Generic[AnyCase]):
    """A theme, and its cases.

    name: a few words with hyphens.
    protects: what it would catch, as a sentence.
    cases: makes the cases of a problem.
    again: whether each trial runs twice. If the device says that it is deterministic, both must leave the same bits.
    together: whether several threads make the calls at the same time.
    lecture, emulated: whether sources of the variant `lecture`, and emulated devices, are also tried.
    interpreted: how many cases a quick and a thorough run have if work items are interpreted; None for all.
    in_one_dtype: whether a quick run there tries one dtype. The interpreter has the same code for all dtypes.
    dtypes: those in which it is tried at all.
    in_others: how many cases a quick run has in a dtype in which it does not try all kinds; None for all.
    costly: whether kernels are compiled anew for it. A quick run then tries it in one variant and dtype.
    """

    name: str
    protects: str
    cases: Callable[[Problem], Iterable[AnyCase]]
    again: bool = False
    together: bool = False
    lecture: bool = True
    emulated: bool = True
    interpreted: tuple[int, int] | None = (1, 4)
    in_one_dtype: bool = True
    dtypes: tuple[str, ...] = DTYPES
    in_others: int | None = 0
    costly: bool = False


@dataclass(frozen=True)
class OfKernel:
    """What the suite tries of one kernel beyond what it tries of any: `TRIALS` of the file kernels/KERNEL/trials.py.

    kinds: in place of the general ones about values.
    few: sizes that show the most, the most telling first. They are for kernels that run in several forms, or slowly.
    larger: sizes for all but interpreted work items.
    shared: sizes with so much work that threads share it.
    of_several_pages: sizes of which each array has several pages of memory.
    of_tiles: one below, at and above what tuned sources take at once. They are for forms that few devices run.
    """

    kinds: Sequence[Kind[Trial]] = ()
    few: Sequence[Sizes] = ()
    larger: Sequence[Sizes] = ()
    shared: Sizes | None = None
    of_several_pages: Sequence[Sizes] = ()
    of_tiles: Sequence[Sizes] = ()

    @classmethod
    def of_vectors(cls, kinds: Sequence[Kind[Trial]]) -> OfKernel:
        """Of a kernel whose one size is the length of its vectors."""
        # none, one, two blocks of a GPU, and one below, at and above each width of vectors and work groups
        few = 0, 1, 257, 3, 255, 256, 31, 33, 2, 4, 5, 7, 8, 9, 15, 16, 17, 32, 63, 65, 64, 521, 2049
        return cls(
            kinds,
            few=[(n,) for n in few],
            larger=[(4096,), (100_003,), (1_048_577,)],
            shared=(300_007,),
            of_several_pages=[(4097,), (5000,), (70_001,)],
            of_tiles=[(n,) for n in (4095, 4096, 4097, 65_535, 65_536, 65_537, 131_073)],
        )


@cache
def of_kernel(kernel: str) -> OfKernel:
    """What a kernel's own file says; nothing if it has none."""
    home = f"py_backends.kernels.{kernel}"
    if registry.kernel_plugin(kernel) or not (find_spec(home) and find_spec(f"{home}.trials")):
        return OfKernel()
    found: OfKernel = import_module(f"{home}.trials").TRIALS
    return found


def named_as(text: str | None, cases: Iterable[AnyCase]) -> list[AnyCase]:
    """The case of that name, or if there is none, all whose names contain it. All cases if the name is None."""
    every = list(cases)
    if text is None:
        return every
    return [case for case in every if case.name == text] or [case for case in every if text in case.name]


@cache
def chosen(kind: Kind[Any], kernel: str, dtype: str, *, quick: bool = False, interpreted: bool = False) -> list[Any]:
    """The cases of a kind at sizes that the problem has, in their order, with numbers.

    quick: whether to leave out those that are for thorough runs.
    interpreted: whether to take only those with little work, since Python runs work items one by one.
    """
    problem = registry.problem(kernel)
    if dtype not in kind.dtypes or dtype not in problem.dtypes:
        return []
    cases = with_numbers(problem, (case for case in kind.cases(problem) if dtype in case.dtypes))
    if quick:
        cases = [case for case in cases if not case.thorough]
        cases = cases if dtype in IN_ALL_KINDS else cases[: kind.in_others]
    if interpreted and kind.interpreted:
        cases = [case for case in cases if problem.work(case.sizes) <= _BEARABLE]
        cases = cases[: kind.interpreted[not quick]]
    return cases


def with_numbers(problem: Problem, cases: Iterable[AnyCase]) -> list[AnyCase]:
    """The cases with the numbers of their kernel behind the sizes of their arrays, other ones in each case of a kind.

    Those that the problem does not take with any are left out.
    """
    made: list[AnyCase] = []
    for case in cases:
        sizes = whole(problem, case.sizes, len(made))
        if sizes is None:
            continue
        numbers = zip(problem.parameters, sizes, strict=True)
        told = [f", {name} {number}" for name, number in list(numbers)[len(case.sizes) :]]
        made.append(replace(case, name="".join((case.name, *told)), sizes=sizes) if told else case)
    return made


def of_few_sizes(problem: Problem, cases: Sequence[AnyCase], *, quick: bool, emulated: bool) -> list[AnyCase]:
    """The cases of the first few sizes that they have.

    An emulation has not too much work, and no threads that share it.
    """
    all_sizes = dict.fromkeys(case.sizes for case in cases)
    shared = of_kernel(problem.name).shared

    def bearable_there(sizes: Sizes) -> bool:
        return problem.work(sizes) <= _BEARABLE_IN_TILES and sizes[: len(problem.dimensions)] != shared

    bearable = (sizes for sizes in all_sizes if not emulated or bearable_there(sizes))
    few = list(bearable)[: _FEW_SIZES[quick]]
    return [case for case in cases if case.sizes in few]


def without_subnormals(trial: Trial) -> Trial:
    """The trial with zeros in place of subnormal inputs, for a target that takes them for that."""
    return replace(trial, draw=partial(_flushed, trial.draw))


def _flushed(draw: Draw, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    drawn = draw(shapes, dtype, generator)
    if dtype.kind == "i":
        return drawn
    return [np.where(np.abs(array) < limits(dtype).normal, 0 * array, array) for array in drawn]


class Answered(NamedTuple):
    """A trial in one dtype: its inputs, and the right answer for each output."""

    trial: Trial
    dtype: np.dtype[Any]
    inputs: Inputs
    references: tuple[Reference, ...]


@lru_cache(maxsize=4)
def answered(kernel: str, dtype: str, trials: tuple[Trial, ...]) -> dict[Trial, Answered]:
    """The right answers of trials, which all backends share. BrokenKernel if a plug-in's problem has none."""
    problem = registry.problem(kernel)
    return {trial: answer(problem, trial, np.dtype(dtype)) for trial in trials}


def answer(problem: Problem, trial: Trial, dtype: np.dtype[Any]) -> Answered:
    """Make a trial's inputs, and find the right answer."""
    inputs = trial.inputs(problem, dtype)
    for array in inputs:
        array.flags.writeable = False
    return Answered(trial, dtype, inputs, references(problem, inputs, trial.sizes, dtype))


def references(problem: Problem, inputs: Inputs, sizes: Sequence[Any], dtype: np.dtype[Any]) -> tuple[Reference, ...]:
    """The right answers. BrokenKernel if a plug-in's problem has none to judge by."""
    with blaming(problem, sizes):
        return references_of(problem, inputs, sizes, dtype)


@contextmanager
def blaming(problem: Problem, sizes: Sequence[Any]) -> Iterator[None]:
    """Raise any fault within as BrokenKernel where the problem is a plug-in's."""
    try:
        yield
    except Exception as failed:
        if broken := registry.blamed(problem.name, failed, sizes):
            raise broken from failed
        raise


def drawn_from(values: Sequence[float], shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Inputs whose elements are drawn from a few values, or without any from a normal distribution.

    Integers are then drawn from all of their range.
    """
    if values:
        pool = converted(np.array(values, np.float64), dtype)
        return [generator.choice(pool, shape) for shape in shapes]
    if dtype.kind == "i":
        ends = np.iinfo(dtype)
        return [generator.integers(ends.min, ends.max, shape, dtype, endpoint=True) for shape in shapes]
    return [generator.standard_normal(shape, np.float64).astype(dtype) for shape in shapes]


seeded: Draw = partial(drawn_from, ())
"""Inputs from a normal distribution, or integers from all of their range."""


def has_own_draw(problem: Problem) -> bool:
    """Whether a problem says itself how its inputs are drawn."""
    return type(problem).draw is not Problem.draw


def named(sizes: Sequence[float]) -> str:
    """Sizes as `--shape` takes them."""
    return "x".join(map(str, sizes))


def of_sizes(
    sizes: Iterable[Sizes],
    draws: Mapping[str, Draw] = MappingProxyType({"{}": seeded}),
    *,
    exact: bool = False,
    thorough: Container[Sizes] = (),
    dtypes: tuple[str, ...] = DTYPES,
) -> Iterator[Trial]:
    """Trials of inputs that are drawn in each of several ways, at each of several sizes.

    draws: the ways, by names of their trials with placeholders for the sizes.
    thorough: sizes that a quick run leaves out.
    """
    for (name, draw), each in itertools.product(draws.items(), dict.fromkeys(sizes)):
        yield Trial(name.format(named(each)), each, draw, exact, thorough=each in thorough, dtypes=dtypes)


def at_places(draw: Callable[..., Inputs], *, exact: bool = False) -> Iterator[Trial]:
    """Trials of a vector in which one element counts: near the end of each width of a vector unit or group, and last.

    draw: takes the place of that element before what a `Draw` takes.
    """
    for n, quick in (531, (0, 255, 256, 511, 512, 530)), (70_001, (65_535, 70_000)):
        near = [width + by for width in (8, 16, 64, 128, 256, 512, 4096, 65_536) for by in (-1, 0)]
        for at in dict.fromkeys(place for place in (n - 1, 0, *near, n - 2) if place < n):
            yield Trial(f"{n}, at {at}", (n,), partial(draw, at), exact, thorough=at not in quick)
