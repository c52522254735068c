"""What a kind of case is, apart from how it is run: data, which `running` puts into an arena.

A `Kind` protects against one way to be wrong. It yields `Trial`s: sizes, inputs, and what must hold of the result. All
of them also hold a kernel to its guard zones, and to inputs that nobody writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from py_backends import registry
from py_backends.conformance.sizes import fits
from py_backends.contract import Array, Problem, Reference
from py_backends.harness.check import reference_of

Inputs = list[Array]
Draw = Callable[[Problem, Sequence[int], np.dtype[Any], np.random.Generator], Inputs]
"""Makes the inputs of given sizes and dtype."""
Values = Callable[[np.dtype[Any]], Sequence[float]]
"""What inputs of a dtype are made of."""

Extent = Literal["thorough", "quick", "interpreted", "quick interpreted"]
"""How much is tried: all, what belongs into every run of a CI, and where work items run one by one in Python."""

INTERPRETED: frozenset[Extent] = frozenset({"interpreted", "quick interpreted"})
QUICK: frozenset[Extent] = frozenset({"quick", "quick interpreted"})
_BEARABLE = 80_000
"""Operations of a trial that are not too many where each work item is interpreted."""
DTYPES = ("float32", "float64")
"""What the suite tries, where a backend declares it."""


@dataclass(frozen=True)
class Trial:
    """One case.

    name: what it is called within its kind.
    sizes: of the kernel.
    draw: makes its inputs, from a generator that is seeded with the trial's name.
    exact: whether the result must be the reference itself, and not only within its bound: where every operation is
        exact, in any order, as those of small whole numbers are.
    starts: elements by which each array begins beyond an address that is aligned to a page; the last one counts for
        all further arrays.
    thorough: whether it is left out of a quick run.
    dtypes: in which it is tried.
    bare: whether arrays are given without the zones behind them: a device that knows their lengths sees who reads on.
    """

    name: str
    sizes: tuple[int, ...]
    draw: Draw
    exact: bool = False
    starts: tuple[int, ...] = (0,)
    thorough: bool = False
    dtypes: tuple[str, ...] = DTYPES
    bare: bool = False

    def inputs(self, problem: Problem, dtype: np.dtype[Any]) -> Inputs:
        """Its inputs, the same for everybody."""
        generator = np.random.default_rng(list(self.name.encode()))
        with np.errstate(all="ignore"):  # what is too large for a float32 is infinite
            return self.draw(problem, self.sizes, dtype, generator)


@dataclass(frozen=True)
class Kind:
    """A theme, and its trials.

    name: a few words with hyphens.
    protects: what it would catch, as a sentence.
    trials: of a problem.
    kernel: whose it is; None for any kernel's.
    again: whether each trial runs twice, and must leave the same bits where its device says that it is deterministic.
    lecture, emulated: whether texts of the variant `lecture`, and devices that are emulated, are tried too.
    interpreted: how many trials there are where work items are interpreted, in a quick run and in a thorough one.
    in_one_dtype: whether one dtype will do in a quick run there: what interprets them has one code for all.
    """

    name: str
    protects: str
    trials: Callable[[Problem], Iterable[Trial]]
    kernel: str | None = None
    again: bool = False
    lecture: bool = True
    emulated: bool = True
    interpreted: tuple[int, int] = (1, 4)
    in_one_dtype: bool = True


class Named(Protocol):
    """What has a name within its kind: a trial, a call."""

    @property
    def name(self) -> str:
        """The name."""


_Named = TypeVar("_Named", bound=Named)


def named_as(text: str | None, cases: Iterable[_Named]) -> list[_Named]:
    """The case of that name; where there is none, all whose names contain the text. All cases where it is None."""
    every = list(cases)
    if text is None:
        return every
    return [case for case in every if case.name == text] or [case for case in every if text in case.name]


@cache
def chosen(kind: Kind, kernel: str, dtype: str, extent: Extent) -> list[Trial]:
    """The trials of an extent at sizes that the problem has, in the order in which they stand."""
    problem = registry.problem(kernel)
    trials = [trial for trial in kind.trials(problem) if dtype in trial.dtypes and fits(problem, trial.sizes)]
    if extent in QUICK:
        trials = [trial for trial in trials if not trial.thorough]
    if extent in INTERPRETED:
        trials = [trial for trial in trials if problem.work(trial.sizes) <= _BEARABLE]
        trials = trials[: kind.interpreted[extent not in QUICK]]
    return trials


@dataclass(frozen=True)
class Prepared:
    """A trial with its inputs in one dtype and the right answer."""

    trial: Trial
    inputs: Inputs
    reference: Reference

    @property
    def name(self) -> str:
        """The trial's."""
        return self.trial.name


@lru_cache(maxsize=4)
def prepared(kind: Kind, kernel: str, dtype: str, extent: Extent) -> list[Prepared]:
    """The trials of a kind with their right answers, which all backends share."""
    problem = registry.problem(kernel)
    return [prepare(problem, trial, np.dtype(dtype)) for trial in chosen(kind, kernel, dtype, extent)]


def prepare(problem: Problem, trial: Trial, dtype: np.dtype[Any]) -> Prepared:
    """Make a trial's inputs, and find the right answer."""
    inputs = trial.inputs(problem, dtype)
    for array in inputs:
        array.flags.writeable = False
    return Prepared(trial, inputs, reference(problem, inputs, trial.sizes))


def reference(problem: Problem, inputs: Inputs, sizes: Sequence[int]) -> Reference:
    """The right answer; BrokenKernel where the problem of a plug-in has none that anything can be judged by."""
    try:
        return reference_of(problem, inputs, sizes)
    except Exception as failed:
        if broken := registry.blamed(problem.name, failed):
            raise broken from failed
        raise


def seeded(problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Inputs from a normal distribution."""
    return [generator.standard_normal(shape, np.float64).astype(dtype) for shape in problem.shapes(sizes)[:-1]]


def named(sizes: Sequence[int]) -> str:
    """Sizes as `--shape` takes them."""
    return "x".join(map(str, sizes))
