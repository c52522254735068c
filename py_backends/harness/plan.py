"""Which rows a comparison has: every kernel on every backend and target, as far as they were asked for."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from py_backends import _discovery
from py_backends._contract import (
    Array,
    BrokenKernel,
    KernelText,
    Problem,
    Reference,
    Target,
    WrongRequest,
    whole_number,
)
from py_backends.harness import doctor
from py_backends.harness.doctor import BackendTarget
from py_backends.harness.results import Row

ALL = "all"
LARGEST_SIZE = 2**40
DTYPES = ("float32", "float64")
Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Request:
    """What was asked for; None stands for all, and of the variants for the first that a backend has.

    The variant `all` stands for all that a backend has; one that is named is skipped where it is missing.
    """

    kernels: Sequence[str] | None = None
    backends: Sequence[str] | None = None
    targets: Sequence[str] | None = None
    variants: Sequence[str] | None = None
    dtypes: Sequence[str] = ("float32",)
    shapes: Mapping[str, Sequence[Sizes]] = field(default_factory=dict)
    threads: Sequence[int | None] = (None,)
    """Numbers of threads, each of which makes rows of its own; None stands for that of the whole comparison."""
    wanted: Callable[[Row], bool] = lambda _: True
    """Of the rows that all this makes, those that are to be planned."""
    runs: int = 48
    """Runs for which each row must have time: checks, settling, and the rest rounds. With fewer, a slow row keeps a
    larger shape, and the whole has fewer rounds."""
    shorten: bool = True
    """Whether a row that takes too long for the budget runs at a smaller shape; else it is skipped."""
    obeying: bool = False
    """Whether a row is skipped that does not run on as many of this machine's CPUs as it is asked to."""

    def __post_init__(self) -> None:
        for names in ("kernels", "backends", "targets", "variants", "dtypes"):
            if isinstance(getattr(self, names), str):
                raise WrongRequest(f"{names} takes a list of names, not the text {getattr(self, names)!r}")
        for name in self.kernels or ():
            _discovery.known(name, _all_kernels(), "kernel")
        for name in self.backends or ():
            _discovery.known(name, doctor.names(), "backend")
        for name in self.dtypes:
            _discovery.known(name, DTYPES, "dtype")
        self._check_shapes()
        for name in self.variants or ():
            _discovery.known(name, [*_discovery.variant_names(), ALL], "variant")

    def _check_shapes(self) -> None:
        for kernel, shapes in self.shapes.items():
            problem = _discovery.problem(kernel)
            if not isinstance(shapes, Sequence) or not shapes or not all(isinstance(s, Sequence) for s in shapes):
                raise WrongRequest(f"the shapes of {kernel} are a list of tuples of sizes, not {shapes!r}")
            if self.kernels and kernel not in self.kernels:
                raise WrongRequest(f"a shape is given for {kernel}, which is not among the kernels: leave out one")
            for sizes in shapes:
                _check_sizes(problem, sizes)

    def settings(self) -> dict[str, Any]:
        """The request as it stands in the results, in values of JSON; `resume` makes the same of it again."""
        names = {each: getattr(self, each) for each in ("kernels", "backends", "targets", "variants", "dtypes")}
        shapes = {
            kernel: [[operator.index(size) for size in sizes] for sizes in given]
            for kernel, given in self.shapes.items()
        }
        return {each: None if given is None else list(given) for each, given in names.items()} | {"shapes": shapes}

    def chosen_kernels(self) -> list[str]:
        """The kernels to run, in order of their names, and those that plug-ins promise and do not bring."""
        return list(self.kernels or _all_kernels())

    def chosen_backends(self) -> list[str]:
        return list(self.backends or doctor.names())

    def chosen_shapes(self, problem: Problem) -> Sequence[Sizes]:
        shapes = self.shapes.get(problem.name, [problem.default_sizes])
        return [tuple(map(operator.index, sizes)) for sizes in shapes]


@dataclass
class PlannedRow:
    """A row before it has run. `text` is None where there is nothing to run: its status says why."""

    row: Row
    problem: Problem
    requested: Sizes
    target: Target
    text: KernelText | None

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.row.dtype)

    @property
    def title(self) -> str:
        """What runs, in a few words."""
        return f"{self.row.kernel} {self.row.dtype} {self.row.backend} {self.row.target}"

    @property
    def group(self) -> tuple[str, str, Sizes]:
        """Rows of one group were asked for the same thing and are compared with one another."""
        return self.row.kernel, self.row.dtype, self.requested


def plan(request: Request, found: Sequence[BackendTarget]) -> list[PlannedRow]:
    """All rows for the targets that were found; WrongRequest where a named target is nowhere among them."""
    for name in request.targets or ():
        _discovery.known(name, sorted({target.name for _, target in found}), "target")
    broken = _discovery.broken_kernels()
    problems = [_discovery.problem(kernel) for kernel in request.chosen_kernels() if kernel not in broken]
    rows = (
        planned
        for problem in problems
        for sizes in request.chosen_shapes(problem)
        for dtype in request.dtypes
        for backend, target in found
        if not request.targets or target.name in request.targets
        for threads in request.threads
        for planned in _rows(problem, sizes, dtype, backend, target, request.variants, threads)
    )
    return [planned for planned in rows if request.wanted(planned.row)] + [
        planned
        for kernel in request.chosen_kernels()
        if kernel in broken
        for planned in _rows_of_broken(kernel, broken[kernel], request, found)
    ]


def _rows(
    problem: Problem,
    sizes: Sizes,
    dtype: str,
    backend: str,
    target: Target,
    variants: Sequence[str] | None,
    threads: int | None,
) -> Iterator[PlannedRow]:
    texts = _discovery.kernel_texts(problem.name, backend)
    if variants and ALL in variants:
        variants = list(texts)
    for variant in variants or [next(iter(texts), "lecture")]:
        row = Row(problem.name, backend, target.name, variant, dtype, named(problem, sizes), "skipped")
        row.device, row.threads = target.device, threads
        text = texts.get(variant)
        if not target.available:
            row.status, row.reason, row.fix = "unavailable", target.reason, target.fix
            text = None
        elif text is None:
            row.reason, row.fix = f"{backend} has no {variant} {problem.name}", _discovery.why_no_text(backend)
        yield PlannedRow(row, problem, sizes, target, text)


class _NoProblem(Problem):
    """Stands for the problem of a kernel that has none: no row of it runs."""

    dimensions, rule, rate, in_place, default_sizes = (), "", "", False, ()

    def shapes(self, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        return ()

    def sizes(self, *inputs: Array) -> tuple[int, ...]:
        return ()

    def reference(self, inputs: Sequence[Array]) -> Reference:
        raise NotImplementedError

    def flops(self, sizes: Sequence[int]) -> int:
        return 0


def _rows_of_broken(
    kernel: str, broken: BrokenKernel, request: Request, found: Sequence[BackendTarget]
) -> Iterator[PlannedRow]:
    """A row wherever the kernel would run, which says why it does not: `error`, so that nobody overlooks it.

    It would run wherever it has a text; everywhere, where it has none that can be found.
    """
    texts = {backend: list(_discovery.kernel_files(kernel, backend)) for backend, _ in found}
    for backend, target in found:
        if (request.targets and target.name not in request.targets) or not (texts[backend] or not any(texts.values())):
            continue
        for dtype in request.dtypes:
            variant = next(iter(texts[backend]), "lecture")
            row = Row(kernel, backend, target.name, variant, dtype, {}, "error", broken.reason, broken.fix)
            row.device = target.device
            if not target.available:
                row.status, row.reason, row.fix = "unavailable", target.reason, target.fix
            yield PlannedRow(row, _NoProblem(), (), target, None)


def _all_kernels() -> list[str]:
    return [*_discovery.kernel_names(), *_discovery.broken_kernels()]


def only_timed(rows: Sequence[PlannedRow]) -> list[PlannedRow]:
    """Rows without those that an emulation would check and not time, which say so. For `choose` of a comparison."""
    for planned in rows:
        if planned.target.emulated:
            planned.row.reason, planned.text = "emulated: it would be checked and not timed, see compare", None
    return [planned for planned in rows if planned.text is not None]


class FirstOfDevice:
    """Tells of a row whether its target is the first that its backend has for its device, or is not there at all.

    More instruction sets of one CPU are more rows than pictures and budgets have room for.
    """

    def __init__(self) -> None:
        self._first: dict[tuple[str, str | None], str] = {}

    def __call__(self, row: Row) -> bool:
        if row.status == "unavailable":
            return True
        return self._first.setdefault((row.backend, row.device), row.target) == row.target


def named(problem: Problem, sizes: Sizes) -> dict[str, int]:
    """The sizes by the names of the problem's dimensions."""
    return dict(zip(problem.dimensions, sizes, strict=True))


def _check_sizes(problem: Problem, sizes: Sizes) -> None:
    if len(sizes) != len(problem.dimensions):
        wanted = " x ".join(problem.dimensions)
        raise WrongRequest(f"{problem.name} takes the sizes {wanted}: got {len(sizes)} of them")
    for dimension, size in zip(problem.dimensions, sizes, strict=True):
        whole_number(f"{dimension} of {problem.name}", size, 0, LARGEST_SIZE)
