"""What a run of the suite tries: backends, targets, kernels and kinds, as its options say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from py_backends import registry
from py_backends.conformance import any_kernel, calls, of_matmul, of_vecadd
from py_backends.conformance.at_hand import at_hand, targets_of
from py_backends.conformance.tally import DRAWN
from py_backends.conformance.trials import DTYPES, Extent, Kind
from py_backends.contract import Target
from py_backends.errors import WrongRequest
from py_backends.harness.doctor import BackendTarget
from py_backends.kernel_text import KernelText

_OF_KERNELS = (*of_vecadd.KINDS, *of_matmul.KINDS)


class Subject(NamedTuple):
    """A kernel's text on one target."""

    text: KernelText
    target: Target

    @property
    def label(self) -> str:
        """For the name of a test."""
        return f"{self.text.backend}-{self.target.name}-{self.text.kernel}-{self.text.variant}"


@dataclass(frozen=True)
class Selection:
    """The options of a run. An empty list is everything.

    case: only cases whose names contain it; None for all.
    patience: seconds after which a worker that has not answered is taken for hung.
    """

    backends: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    case: str | None = None
    quick: bool = False
    patience: float = 60.0

    def check(self) -> None:
        """Raise WrongRequest, with one clear line, for a name that is nothing's, and where nothing is chosen.

        BackendUnavailable and BrokenKernel for what a plug-in promises and does not bring.
        """
        for name in self.backends:
            registry.known_backend(name)
        for name in self.kernels:
            registry.problem(name)
        for what, names, there in (
            ("variant", self.variants, registry.variant_names()),
            ("kind", self.kinds, kind_names()),
        ):
            for name in names:
                registry.known(name, there, what)
        if self.targets:
            there = [target.name for name in self._backends() for target in targets_of(name)]
            for name in self.targets:
                registry.known(name, dict.fromkeys(there), "target")
        if self.backends and not any(self._texts(name) for name in self.backends):
            raise WrongRequest(f"{', '.join(self.backends)}: there is no text of any chosen kernel and variant")

    def at_hand(self) -> list[BackendTarget]:
        """The chosen targets: those that are there, those that were named, and one of each backend that has none."""
        if not self.targets:
            return at_hand(self._backends())
        names = self._backends()
        chosen = [BackendTarget(name, target) for name in names for target in targets_of(name)]
        return [each for each in chosen if each.target.name in self.targets]

    def subjects(self) -> Iterator[Subject]:
        """Every chosen text on every chosen target that is there."""
        for backend, target in self.at_hand():
            for text in self._texts(backend) if target.available else ():
                yield Subject(text, target)

    def kinds_of(self, kernel: str) -> list[Kind]:
        """The chosen kinds of results of a kernel."""
        return [kind for kind in all_kinds_of(kernel) if not self.kinds or kind.name in self.kinds]

    def call_kinds(self) -> list[calls.CallKind]:
        """The chosen kinds of calls."""
        return [kind for kind in calls.KINDS if not self.kinds or kind.name in self.kinds]

    def extent(self, target: Target) -> Extent:
        """How much is tried on a target."""
        if target.interpreted:
            return "quick interpreted" if self.quick else "interpreted"
        return "quick" if self.quick else "thorough"

    def _backends(self) -> Sequence[str]:
        return self.backends or registry.backend_names()

    def _texts(self, backend: str) -> list[KernelText]:
        return [
            text
            for kernel in registry.kernel_names()
            for variant, text in registry.kernel_texts(kernel, backend).items()
            if (not self.kernels or kernel in self.kernels) and (not self.variants or variant in self.variants)
        ]


def first_dtype(backend: str) -> str:
    """The one in which a quick run tries what it tries in one dtype alone."""
    declared = registry.backend(backend).dtypes
    return next((dtype for dtype in DTYPES if dtype in declared), DTYPES[0])


def all_kinds_of(kernel: str) -> list[Kind]:
    """Every kind of results of a kernel: those of any, and its own or what stands for them."""
    own = [kind for kind in _OF_KERNELS if kind.kernel == kernel]
    return [*any_kernel.ALWAYS, *(own or any_kernel.WITHOUT_OWN)]


def kind_names() -> list[str]:
    """Of results and of calls."""
    results = (*any_kernel.ALWAYS, *any_kernel.WITHOUT_OWN, *_OF_KERNELS)
    names = [*(kind.name for kind in results), *(kind.name for kind in calls.KINDS), DRAWN]
    return list(dict.fromkeys(names))
