"""On which kernels a model is judged: a few that are launched in every way that there is."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from py_backends import registry
from py_backends.conformance import test_drawn
from py_backends.conformance.running import Arenas, Runners
from py_backends.conformance.selection import Extent, Selection, Subject, is_default
from py_backends.contract import Problem

SELECTION = Selection(extent=Extent.QUICK)
_WAYS: tuple[Callable[[Problem], bool], ...] = (
    lambda problem: problem.rule == "bitwise",  # one launch, a work item an element
    lambda problem: problem.shapes(problem.default_sizes)[-1] == (),  # several launches, with scratch memory between
    lambda problem: bool(problem.numbers),  # the same launch again and again
)


@cache
def of_backend(backend: str) -> tuple[str, ...]:
    """The first kernel of each way of launching that a backend has, those of the lecture first, or else any kernel."""
    names = dict.fromkeys([*registry.usual_kernels(), *registry.kernel_names()])
    there = [name for name in names if registry.kernel_texts(name, backend)]
    chosen = (next((name for name in there if way(registry.problem(name))), None) for way in _WAYS)
    return tuple(dict.fromkeys(filter(None, chosen))) or tuple(there[:1])


def subjects() -> list[Subject]:
    """Every probe on every target that is there, the most telling one of a target first."""
    found = [each for each in SELECTION.subjects() if is_default(each.text)]
    order = [(each, of_backend(each.text.backend)) for each in found]
    chosen = [(probes.index(each.text.kernel), each) for each, probes in order if each.text.kernel in probes]
    return [each for _, each in sorted(chosen, key=lambda one: one[0])]


def draw(subject: Subject, runners: Runners, arenas: Arenas, request: pytest.FixtureRequest) -> None:
    """Let hypothesis draw calls of a source, or cases where its target is emulated, as a quick suite does."""
    if subject.target.emulated:
        test_drawn.test_drawn_cases_hold(subject, SELECTION, runners, arenas, request)
    else:
        test_drawn.test_drawn_calls_end_as_they_must(subject, SELECTION, runners, request)
