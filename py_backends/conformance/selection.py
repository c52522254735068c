"""What a run of the suite tries: backends, targets, kernels and kinds, as its options say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from py_backends import registry
from py_backends.conformance import any_kernel, calls
from py_backends.conformance.at_hand import at_hand, found
from py_backends.conformance.formats import IN_ALL_KINDS
from py_backends.conformance.tally import DRAWN
from py_backends.conformance.trials import (
    AnyCase,
    Kind,
    Trial,
    chosen,
    named_as,
    of_few_sizes,
    of_kernel,
    without_subnormals,
)
from py_backends.contract import Target
from py_backends.errors import WrongRequest
from py_backends.kernel_text import KernelText
from py_backends.workers.probe import BackendTarget


class Subject(NamedTuple):
    """A kernel's source on one target.

    tried: the number formats in which it is tried. None stands for all that both have.
    """

    text: KernelText
    target: Target
    tried: tuple[str, ...] | None = None

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The number formats in which it is tried."""
        return registry.dtypes(self.text, self.target) if self.tried is None else self.tried

    @property
    def label(self) -> str:
        """How the name of a test shows it."""
        return f"{self.text.backend}-{self.target.name}-{self.text.kernel}-{self.text.variant}"


class Extent(Enum):
    """How much a run tries of what its other options choose."""

    QUICK = "less than half of the cases, those that show the most"
    THOROUGH = "all cases of the suite; the default"


_AT_RAGGED_ENDS = "shapes"
"""The kind that most often tells a wrong source. Where a run tries little, it tries this."""


@dataclass(frozen=True)
class Selection:
    """The options of a run. An empty list is everything.

    case: the case of that name, and in a kind without it, all whose names contain it; None for all.
    patience: after so many seconds without an answer, a worker counts as hung.
    """

    backends: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    case: str | None = None
    extent: Extent = Extent.THOROUGH
    patience: float = 60.0

    @property
    def quick(self) -> bool:
        """Whether the run leaves out the cases that are for thorough ones."""
        return self.extent is Extent.QUICK

    def check(self) -> None:
        """Raise WrongRequest, with one clear line, for an unknown name, and where nothing is chosen.

        Nothing may be chosen at all, or of a backend or a target that is named. That would look like a success.

        Raises BackendUnavailable or BrokenKernel for what a plug-in promises and does not bring.
        """
        for name in self.backends:
            registry.known_backend(name)
        for name in self.kernels:
            registry.problem(name)
        found = self._found() if self.targets else []
        for what, names, there in (
            ("variant", self.variants, registry.variant_names()),
            ("kind", self.kinds, kind_names()),
            ("target", self.targets, dict.fromkeys(target.name for _, target in found)),
        ):
            for name in names:
                registry.known(name, there, what)
        self._check_sources(found)

    def _check_sources(self, found: Sequence[BackendTarget]) -> None:
        """Raise WrongRequest where no chosen source is left, of a named backend, or of one of the targets found."""
        left = [name for name in self._backends() if self.texts(name)] if self._is_narrowed() else self._backends()
        there = [(name, target.name) for name, target in found if name in left and target.name in self.targets]
        bare = [name for name in self.backends if name not in left]
        lacking = [f"backend {name}" for name in bare]
        lacking += [f"target {name}" for name in self.targets if name not in {target for _, target in there}]
        if lacking or not left:
            who = f"{lacking[0]} has no" if lacking else "no backend has a"
            fix = (bare and registry.why_no_text(bare[0])) or "choose others"
            raise WrongRequest(f"{who} source of any chosen kernel and variant: {fix}")
        for name in self.backends if self.targets else ():
            if name not in {backend for backend, _ in there}:
                raise WrongRequest(f"backend {name} has no target {' or '.join(self.targets)}: choose others")

    def _is_narrowed(self) -> bool:
        """Whether a backend may have no source. Looking at all of them is left out where nobody asked for some."""
        return bool(self.backends or self.targets or self.kernels or self.variants)

    def at_hand(self) -> list[BackendTarget]:
        """The chosen targets: those that are there, those that were named, and one of each backend that has none."""
        if not self.targets:
            return at_hand(self._backends())
        return [each for each in self._found() if each.target.name in self.targets]

    def subjects(self) -> Iterator[Subject]:
        """Every chosen source on every chosen target that is there and takes it in some dtype."""
        borrowing: dict[str, Target] = {}
        for backend, target in self.at_hand():
            first = borrowing.setdefault(backend, target) if target.borrowed and target.available else target
            if self.quick and not self.targets and target is not first:
                continue
            for text in self.texts(backend) if target.available else ():
                if tried := self._tried(text, target):
                    yield Subject(text, target, tried)

    def cases(self, kind: Kind[AnyCase], dtype: str, subject: Subject) -> list[AnyCase]:
        """The cases of a kind in this run, for a source on a target. There are none in a dtype that it lacks."""
        text, target = subject.text, subject.target
        if (self.kinds and kind.name not in self.kinds) or dtype not in subject.dtypes:
            return []
        if any_kernel.refusal(text.kernel) is not None:
            return []
        if (text.variant == "lecture" and not kind.lecture) or (target.emulated and not kind.emulated):
            return []
        if self.quick and not self._belongs_to_quick(kind, dtype, subject):
            return []
        every = chosen(kind, text.kernel, dtype, quick=self.quick, interpreted=target.interpreted)
        if target.few_sizes:
            every = of_few_sizes(text.problem, every, quick=self.quick, emulated=target.emulated)
        if not target.subnormals:
            every = [without_subnormals(case) if isinstance(case, Trial) else case for case in every]
        return named_as(self.case, every)

    def _tried(self, text: KernelText, target: Target) -> tuple[str, ...]:
        """The number formats in which a source is tried.

        A quick run has few where each takes seconds, or adds little.
        """
        every = registry.dtypes(text, target)
        if self.quick and self._is_step(text):
            return () if target.emulated else every[:1]  # each emulated one compiles for seconds
        costly = target.just_in_time or target.emulated or target.borrowed
        narrow = [dtype for dtype in every if dtype not in IN_ALL_KINDS]
        if not self.quick or len(narrow) == len(every) or not costly:
            return every
        few = narrow[:1] if is_default(text) and not target.emulated else []
        return tuple(dtype for dtype in every if dtype in IN_ALL_KINDS or dtype in few)

    def _belongs_to_quick(self, kind: Kind[Any], dtype: str, subject: Subject) -> bool:
        """Whether a quick run tries a kind. It tries costly ones once for a kernel and target, or in one dtype."""
        if self._is_step(subject.text) and kind.name != _AT_RAGGED_ENDS:
            return False
        once = kind.costly and not self.variants
        if once and not is_default(subject.text):
            return False
        in_one_dtype = once or (kind.in_one_dtype and subject.target.interpreted)
        return not in_one_dtype or dtype == first_dtype(kind, subject)

    def _is_step(self, text: KernelText) -> bool:
        """Whether a source only leads from `lecture` to the default one, and the run does not name its variant."""
        if self.variants or is_default(text) or text.variant == "lecture":
            return False
        rungs = (rung for ladder in text.problem.steps for rung in ladder.rungs)
        return any((rung.backend, rung.variant) == (text.backend, text.variant) for rung in rungs)

    def _found(self) -> list[BackendTarget]:
        return found(self._backends(), self.targets)

    def _backends(self) -> Sequence[str]:
        return self.backends or registry.backend_names()

    def texts(self, backend: str) -> list[KernelText]:
        """The chosen sources of a backend."""
        return [
            text
            for kernel in registry.kernel_names()
            for variant, text in registry.kernel_texts(kernel, backend).items()
            if (not self.kernels or kernel in self.kernels) and (not self.variants or variant in self.variants)
        ]


def is_default(text: KernelText) -> bool:
    """Whether a source is the one that its backend takes of a kernel where no variant is named."""
    return text.variant == next(iter(registry.kernel_texts(text.kernel, text.backend)))


def first_dtype(kind: Kind[Any], subject: Subject) -> str | None:
    """The dtype in which a quick run tries a kind that it tries in only one. None where there is no case in any."""
    return next((dtype for dtype in subject.dtypes if chosen(kind, subject.text.kernel, dtype, quick=True)), None)


def all_kinds_of(kernel: str) -> list[Kind[Trial]]:
    """Every kind of trials of a kernel: those of any kernel, and its own, or the general ones if it has none."""
    return [*any_kernel.ALWAYS, *(of_kernel(kernel).kinds or any_kernel.WITHOUT_OWN)]


def kind_names() -> list[str]:
    """The names of all kinds, those of trials and of calls."""
    own = [kind for kernel in registry.kernel_names() for kind in of_kernel(kernel).kinds]
    names = [
        *(kind.name for kind in (*any_kernel.ALWAYS, *any_kernel.WITHOUT_OWN, *own)),
        *(kind.name for kind in calls.KINDS),
        DRAWN,
    ]
    return list(dict.fromkeys(names))
