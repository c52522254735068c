"""A model keeps the rules of results and calls, judged on a few probe kernels.

What a model gets wrong by itself, it gets wrong with every kernel: layouts, walls, alignments, guard zones, formats,
threads, what an earlier call left. So a target is tried here as much with seven kernels as with seventy. That each of
its sources is right, test_pairs.py says, and the whole conformance suite tries all of it with each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import probes
import pytest
from conftest import at_hand
from stamps import STAMPED, Due, Stamps

from py_backends.conformance import any_kernel, calls
from py_backends.conformance.plugin import begin, finish, marked
from py_backends.conformance.running import Arenas, Runners, run_kind
from py_backends.conformance.selection import Subject
from py_backends.conformance.tally import DRAWN
from py_backends.conformance.trials import Kind
from py_backends.contract import Target

pytestmark = pytest.mark.sample
SHAPES = any_kernel.ALWAYS[0]


@pytest.mark.parametrize(
    ("backend", "target"), [marked(name, name, target, name=f"{name}-{target.name}") for name, target in at_hand()]
)
def test_it_is_there(backend: str, target: Target) -> None:
    """A backend that is missing gives its reason here."""
    assert target.available, backend


def tried() -> Iterator[tuple[Subject, Kind[Any], str]]:
    """What is tried of each probe: kinds of any kernel; of the first one also calls, and sizes in every format."""
    for subject in probes.subjects():
        first, *others = subject.dtypes
        yield from ((subject, kind, first) for kind in any_kernel.ALWAYS)
        if subject.text.kernel == probes.of_backend(subject.text.backend)[0]:
            yield from ((subject, kind, first) for kind in calls.KINDS)
            yield from ((subject, SHAPES, dtype) for dtype in others)


def was_right(request: pytest.FixtureRequest, subject: Subject, of: str) -> bool:
    """Whether a stamp says so, which the table at the end counts."""
    right = Stamps().due(subject, of) is Due.NOTHING
    request.node.user_properties.append((STAMPED, {"rules by stamp": int(right)}))
    return right


@pytest.mark.parametrize(
    ("subject", "kind", "dtype"),
    [
        marked(subject.text.backend, subject, kind, dtype, name=f"{subject.label}-{dtype}-{kind.name}")
        for subject, kind, dtype in tried()
        if probes.SELECTION.cases(kind, dtype, subject)
    ],
)
def test_a_model_keeps_the_rules(
    subject: Subject, kind: Kind[Any], dtype: str, runners: Runners, arenas: Arenas, request: pytest.FixtureRequest
) -> None:
    if was_right(request, subject, f"{dtype}-{kind.name}"):
        return
    runner, (tally,) = begin(request.config, subject, runners, [dtype], kind.name)
    run_kind(tally, runner, arenas, subject, kind, probes.SELECTION.cases(kind, dtype, subject))
    finish(request.node, subject, tally)
    if not tally.left_out:
        Stamps().keep(subject, f"{dtype}-{kind.name}", passed=True)


@pytest.mark.parametrize(
    "subject",
    [
        marked(subject.text.backend, subject, name=subject.label)
        for subject in probes.subjects()
        if subject.text.kernel == probes.of_backend(subject.text.backend)[0]
    ],
)
def test_what_is_drawn_holds(
    subject: Subject, runners: Runners, arenas: Arenas, request: pytest.FixtureRequest
) -> None:
    if was_right(request, subject, DRAWN):
        return
    probes.draw(subject, runners, arenas, request)
    Stamps().keep(subject, DRAWN, passed=True)
