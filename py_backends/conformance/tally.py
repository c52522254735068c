"""Counts what held and what did not, and reports it at the end of a run."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from itertools import groupby

from py_backends import registry

DRAWN = "drawn"
"""The kind of the cases that hypothesis draws."""
PREPARE, REFERENCE, SIZES = "prepare", "reference", "sizes"
"""What replaces a case if a source cannot be compiled, and if its problem has no right answer, or none of the sizes."""
DEPENDING = frozenset({DRAWN, "repeats", "calls-repeated", "threads-at-once"})
"""Kinds whose cases depend on earlier or simultaneous ones. None of them fails alone."""
MOST_FAILURES = 3
"""So many cases of a kind may fail before the others are left out. Some crash or hang, and each takes seconds."""
_MOST_SHOWN = 12
"""For how many failing kinds the cases are shown."""
_MOST_TARGETS = 4
"""With more lines than this, a target has one line for all that holds."""


@dataclass
class Tally:
    """The results of the cases of one kind, for one source, target and dtype.

    cases: how many ran.
    failures: the case and what was wrong, the first few.
    left_out: a case that was not run, and why.
    """

    backend: str
    target: str
    kernel: str
    variant: str
    dtype: str
    kind: str
    cases: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)

    def add(self, name: str, wrong: str | None) -> None:
        """Count a case that ran."""
        self.cases += 1
        if wrong is not None:
            self.failures.append((name, wrong))

    @property
    def hung(self) -> bool:
        """Whether a case did not end."""
        return any(reason.startswith("timeout") for _, reason in self.failures)

    @property
    def exhausted(self) -> bool:
        """Whether to stop: enough cases have failed, or one took too long."""
        return self.hung or len(self.failures) >= MOST_FAILURES

    @property
    def command(self) -> str:
        """How to repeat its first failing case, alone if it fails alone."""
        kernel = shlex.quote(registry.given_as(self.kernel))
        text = f"--backend={self.backend} --target={self.target} --kernel={kernel} --variant={self.variant}"
        dtype = "" if self.kind == DRAWN else f" -k {self.dtype}"
        name = self.failures[0][0]
        alone = "" if self.kind in DEPENDING or name in {PREPARE, REFERENCE, SIZES} else f" --case={shlex.quote(name)}"
        return f"pytest --pyargs py_backends.conformance {text} --kind={self.kind}{dtype}{alone}"


def summary(tallies: list[Tally]) -> list[str]:
    """What held and what did not, a line for each kernel, variant and dtype. Then what failed, and how to repeat it."""
    ordered = sorted(tallies, key=lambda one: (*_place(one), one.kernel, one.variant, one.dtype))
    targets = {_place(one) for one in ordered}
    width = max([10, *(len(one.variant) for one in ordered)])
    lines = []
    for (backend, target), of_target in groupby(ordered, key=_place):
        together = list(of_target)
        lines.append(f"{backend} {target}")
        if len(targets) > _MOST_TARGETS and not any(one.failures for one in together):
            kernels = ", ".join(sorted({one.kernel for one in together}))
            lines.append(f"  {kernels}: {_held(together)} hold")
            continue
        for text, of_text in groupby(together, key=lambda one: (one.kernel, one.variant, one.dtype)):
            lines.append(f"  {text[0]:<10} {text[1]:<{width}} {text[2]:<8} {_line(list(of_text))}")
    return [*lines, *_remarks(ordered)]


def _place(one: Tally) -> tuple[str, str]:
    return one.backend, one.target


def _line(tallies: list[Tally]) -> str:
    right = [one for one in tallies if not one.failures]
    wrong = [f"{one.kind} ({len(one.failures)} of {one.cases})" for one in tallies if one.failures]
    fails = f"FAILS in {', '.join(wrong)}; " if wrong else ""
    return f"{fails}{_held(right)} hold"


def _held(tallies: list[Tally]) -> str:
    kinds = len({one.kind for one in tallies})
    return f"{sum(one.cases for one in tallies):,} cases of {kinds} kinds"


def _remarks(tallies: list[Tally]) -> list[str]:
    wrong = [one for one in tallies if one.failures]
    lines = []
    for one in wrong[:_MOST_SHOWN]:
        lines += ["", f"{one.backend} {one.target} {one.kernel} {one.variant} {one.dtype}: {one.kind}"]
        lines += [f"  {name}: {reason}" for name, reason in one.failures]
        lines.append(f"  {one.command}")
    if len(wrong) > _MOST_SHOWN:
        lines += ["", f"and {len(wrong) - _MOST_SHOWN} more"]
    for one in tallies:
        if one.left_out and not one.failures:
            name, reason = one.left_out[0]
            lines.append(f"{one.backend} {one.target} {one.kernel} {one.kind}: {name} was left out: {reason}")
    return lines
