"""What a user requests, by names and shapes: which rows a comparison has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from py_backends import registry
from py_backends.contract import Problem, Target
from py_backends.errors import WrongRequest
from py_backends.kernel_text import KernelText
from py_backends.limits import LARGEST_SIZE, real_number, whole_number
from py_backends.number_formats import DTYPES
from py_backends.results.spec import Sizes, Spec
from py_backends.wording import in_one_line, shown
from py_backends.workers import probe
from py_backends.workers.probe import BackendTarget

ALL = "all"
Place = tuple[str, Target, str]
"""The backend, its target and the variant of a row."""


@dataclass(frozen=True)
class Request:
    """The names and shapes that a user requests. None stands for all; for variants, for the first of each backend.

    Without kernels, those run that are for this (`Problem.by_default`), and those that have a shape here. The kernel
    `all` stands for every one, and the variant `all` for all variants of a backend. If a backend lacks a named variant,
    its row is skipped.

    every_target: whether a backend runs on all targets of a device, or only on the first with the source and format.
    """

    kernels: Sequence[str] | None = None
    backends: Sequence[str] | None = None
    targets: Sequence[str] | None = None
    variants: Sequence[str] | None = None
    dtypes: Sequence[str] = ("float32",)
    shapes: Mapping[str, Sequence[Sizes]] = field(default_factory=dict)
    every_target: bool = True

    def __post_init__(self) -> None:
        for what in ("kernels", "backends", "targets", "variants", "dtypes"):
            object.__setattr__(self, what, _names(what, getattr(self, what)))
        if self.kernels is not None:
            object.__setattr__(self, "kernels", tuple(map(registry.kernel_named, self.kernels)))
        for name in self.kernels or ():
            registry.known(name, [*_all_kernels(), ALL], "kernel")
        for name in self.backends or ():
            registry.known(name, probe.names(), "backend")
        for name in self.dtypes:
            registry.known(name, DTYPES, "dtype")
        self._check_shapes()
        for name in self.variants or ():
            registry.known(name, [*registry.variant_names(), ALL], "variant")

    def _check_shapes(self) -> None:
        if not isinstance(self.shapes, Mapping):
            raise WrongRequest(f"shapes takes a dict such as {{'vecadd': [(1000,)]}}, not {shown(self.shapes)}")
        for kernel, shapes in self.shapes.items():
            problem = registry.problem(kernel)
            if not isinstance(shapes, Sequence) or not shapes or not all(isinstance(s, Sequence) for s in shapes):
                raise WrongRequest(f"the shapes of {kernel} are a list of tuples of sizes, not {shown(shapes)}")
            if self.kernels and kernel not in self.wanted:
                raise WrongRequest(f"a shape is given for {kernel}, which is not among the requested kernels")
            for sizes in shapes:
                checked_sizes(problem, sizes)

    @property
    def wanted(self) -> list[str]:
        """The kernels that run. A broken one runs too where none is named, since nobody knows whether it should."""
        if self.kernels is None:
            return list(dict.fromkeys([*registry.usual_kernels(), *registry.broken_kernels(), *self.shapes]))
        return _all_kernels() if ALL in self.kernels else list(self.kernels)

    def settings(self) -> dict[str, Any]:
        """The request in values of JSON, as the results hold it. `resume` makes the same request from it."""
        names = {each: getattr(self, each) for each in ("kernels", "backends", "targets", "variants", "dtypes")}
        names["kernels"] = None if self.kernels is None else [registry.given_as(name) for name in self.kernels]
        shapes = {
            kernel: [checked_sizes(registry.problem(kernel), sizes)[: len(sizes)] for sizes in given]
            for kernel, given in self.shapes.items()
        }
        return {each: None if given is None else list(given) for each, given in names.items()} | {"shapes": shapes}

    def specs(self, found: Sequence[BackendTarget]) -> list[Spec]:
        """The specs of the whole request on the targets that were found.

        A number format that a kernel, a backend or a target lacks gives no spec. A broken kernel of a plug-in gets
        specs without sizes, so that its rows show the fault. They are for backends that have a source of it, or for all
        if none has.

        Raises WrongRequest for a named target that was not found, and if there is no spec at all.
        """
        for name in self.targets or ():
            registry.known(name, sorted({target.name for _, target in found}), "target")
        taken = [each for each in found if not self.targets or each.target.name in self.targets]
        chosen: Callable[[list[Place]], list[Place]] = list if self.every_target else _first_of_each_device
        kernels = self.wanted
        broken = [kernel for kernel in kernels if kernel in registry.broken_kernels()]
        specs = [
            Spec(kernel, backend, target.name, variant, dtype, sizes)
            for kernel in kernels
            if kernel not in broken
            for sizes in self.chosen_shapes(registry.problem(kernel))
            for dtype in self.dtypes
            for backend, target, variant in chosen(self._places(kernel, taken, dtype))
        ]
        for kernel in broken:
            files = {backend: list(registry.kernel_files(kernel, backend)) for backend, _ in found}
            places = [
                (backend, target, next(iter(files[backend]), "lecture"))
                for backend, target in taken
                if files[backend] or not any(files.values())
            ]
            specs += [
                Spec(kernel, backend, target.name, variant, dtype, ())
                for backend, target, variant in chosen(places)
                for dtype in self.dtypes
            ]
        if kernels and taken and not specs:
            raise WrongRequest(self._why_nothing(kernels))
        return specs

    def specs_and_left_out(self, found: Sequence[BackendTarget]) -> list[Spec]:
        """`specs`, and one for each kernel that the user names and that has none of the formats: its row says so."""
        specs = self.specs(found)
        named = [kernel for kernel in (*(self.kernels or ()), *self.shapes) if kernel != ALL]
        taken = [each for each in found if not self.targets or each.target.name in self.targets]
        if not taken:
            return specs
        backend, target = next((each for each in taken if each.target.available), taken[0])
        return specs + [
            Spec(kernel, backend, target.name, "lecture", self.dtypes[0], ())
            for kernel in dict.fromkeys(named)
            if kernel not in registry.broken_kernels() and not self._has_some(kernel)
        ]

    def _has_some(self, kernel: str) -> bool:
        """Whether a kernel has any of the requested number formats, wherever it runs."""
        return not set(self.dtypes).isdisjoint(registry.problem(kernel).dtypes)

    def _places(self, kernel: str, taken: Sequence[BackendTarget], dtype: str) -> list[Place]:
        """Where a kernel runs in a number format."""
        return [
            (backend, target, variant)
            for backend, target in taken
            for variant in self._variants(kernel, backend, target, dtype)
        ]

    def _variants(self, kernel: str, backend: str, target: Target, dtype: str) -> list[str]:
        """The variants to run in a number format, and the named variants that the backend lacks in every format."""
        texts = registry.kernel_texts(kernel, backend)
        if not texts:
            return _variants(texts, self.variants) if dtype in registry.problem(kernel).dtypes else []
        able = registry.texts_in(dtype, kernel, backend, target)
        return [
            variant for variant in _variants(able or texts, self.variants) if variant in able or variant not in texts
        ]

    def _why_nothing(self, kernels: Sequence[str]) -> str:
        """The error if no backend has any of the kernels in the requested number formats."""
        has = [f"{kernel} has {', '.join(registry.problem(kernel).dtypes)}" for kernel in kernels]
        only = registry.problem(kernels[0]).dtypes
        if len(kernels) == 1 and len(only) == 1 and not self._has_some(kernels[0]):
            has = [f"{kernels[0]} has {only[0]} alone: {how_to_ask(only)}"]
        where = f" in {', '.join(self.backends)}" if self.backends else ""
        return f"nothing runs in {', '.join(self.dtypes)}{where}: {'; '.join(has)}"

    def chosen_shapes(self, problem: Problem) -> Sequence[Sizes]:
        """The sizes at which a kernel runs."""
        shapes = self.shapes.get(problem.name, [problem.default_sizes])
        return [tuple(checked_sizes(problem, sizes)) for sizes in shapes]


def _names(what: str, given: Iterable[str] | None) -> tuple[str, ...] | None:
    """The names that a user gives, each once; None stands for all. WrongRequest for what is no list of names."""
    if given is None:
        return None
    if isinstance(given, str):
        raise WrongRequest(f"{what} takes a list of names, not the string {shown(given)}")
    try:
        names = tuple(dict.fromkeys(given))
    except TypeError:
        raise WrongRequest(f"{what} takes a list of names, not {shown(given)}") from None
    if not names:  # a list that came out empty is hardly meant to stand for all
        raise WrongRequest(f"{what} is an empty list: name some, or leave it out for all")
    return names


def _variants(texts: Mapping[str, KernelText], variants: Sequence[str] | None) -> list[str]:
    """The variants of a backend to run, and the named ones that it lacks."""
    if variants and ALL in variants:
        return list(texts) or ["lecture"]
    return list(variants or [next(iter(texts), "lecture")])


def _all_kernels() -> list[str]:
    return [*registry.kernel_names(), *registry.broken_kernels()]


def _first_of_each_device(places: list[Place]) -> list[Place]:
    """For each backend, device and variant the first available target, and all unavailable targets.

    Pictures and budgets have no room for every instruction set of a CPU. If a backend has another target for each
    number of threads, the first target of each kind is taken.
    """
    first: dict[tuple[Any, ...], str] = {}
    return [
        (backend, target, variant)
        for backend, target, variant in places
        if not target.available
        or first.setdefault((backend, target.device, variant, *target.on_threads.values()), target.name) == target.name
    ]


def how_to_ask(dtypes: Sequence[str]) -> str:
    """What a user has to add where none of a kernel's number formats was requested."""
    return f"add --dtype {dtypes[0]}"


def checked_sizes(problem: Problem, sizes: Sizes) -> list[Any]:
    """Sizes and numbers of a kernel as Python's own numbers.

    Raises WrongRequest for others, and in the problem's words for a shape that it refuses.
    """
    named = [
        (f"{name} of {problem.name}", name in problem.reals, each)
        for name, each in zip(problem.parameters, problem.whole_sizes(sizes), strict=True)
    ]
    checked = [
        real_number(what, each) if is_real else whole_number(what, each, 0, LARGEST_SIZE)
        for what, is_real, each in named
    ]
    _check_taken(problem, checked)
    return checked


def _check_taken(problem: Problem, sizes: Sequence[Any]) -> None:
    """Raise WrongRequest, in the problem's words, for a shape that it refuses. Any other fault of it is for its row."""
    try:
        problem.shapes(sizes)
    except ValueError as refused:
        shape = "x".join(map(str, sizes))
        raise WrongRequest(f"{problem.name} does not take the shape {shape}: {in_one_line(str(refused))}") from None
    except Exception:  # noqa: BLE001  # its row says more
        return
