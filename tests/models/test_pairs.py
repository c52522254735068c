"""Each source is right on each target, as far as a short run can tell, and as far as nothing has told it before.

Sources that need no compiler at run time are all tried: the preferred one of each kernel, in one format, at a few
sizes. Of those that are compiled for seconds, each kernel is tried on two targets, and each target with a kernel beside
its probes. A source that was changed since it was last seen is tried whole: as the quick suite tries it, in all of its
formats. What passed before, with nothing changed around it, has a stamp and is not tried again: see stamps.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import probes
import pytest
from stamps import STAMPED, Due, Stamps

from py_backends.conformance import any_kernel, calls
from py_backends.conformance.plugin import begin, finish, marked
from py_backends.conformance.running import Arenas, Runners, run_kind
from py_backends.conformance.selection import Extent, Selection, Subject, all_kinds_of, is_default
from py_backends.conformance.trials import SUBNORMALS, Kind
from py_backends.contract import Target

pytestmark = pytest.mark.sample
FEW_SIZES = 3
Place = tuple[str, str]
"""A backend and a target."""


def place(subject: Subject) -> Place:
    return subject.text.backend, subject.target.name


def takes_seconds(target: Target) -> bool:
    return target.just_in_time or target.emulated


def covered(sources: Sequence[Subject]) -> set[tuple[str, Place]]:
    """Of kernels that are compiled for seconds, those to compile: each for two targets, and each target with one more.

    Probes are not counted: they are compiled for every target in any case.
    """
    late = [each for each in sources if takes_seconds(each.target) and not is_probe(each)]
    there: dict[str, dict[Place, None]] = {}
    for each in late:
        there.setdefault(each.text.kernel, {})[place(each)] = None
    chosen = set()
    for at, (kernel, places) in enumerate(reversed(there.items())):  # any order covers
        for by in (0, 1):
            chosen.add((kernel, list(places)[(2 * at + by) % len(places)]))
    without = dict.fromkeys(place(each) for each in late if place(each) not in {where for _, where in chosen})
    for at, where in enumerate(without):
        kernels = [kernel for kernel, places in there.items() if where in places]
        chosen.add((kernels[at % len(kernels)], where))
    return chosen


def is_probe(subject: Subject) -> bool:
    return subject.text.kernel in probes.of_backend(subject.text.backend)


SOURCES = [Subject(each.text, each.target) for each in Selection().subjects()]
COVERED = covered(SOURCES)


def is_tried_in_a_fresh_clone(subject: Subject) -> bool:
    if not is_default(subject.text):
        return False
    return not takes_seconds(subject.target) or is_probe(subject) or (subject.text.kernel, place(subject)) in COVERED


def cases_of(subject: Subject, due: Due) -> Iterator[tuple[Kind[Any], dict[str, list[Any]]]]:
    """The cases of each kind, by format."""
    if due is Due.LITTLE:
        shapes, first = any_kernel.ALWAYS[0], subject.dtypes[0]
        yield shapes, {first: probes.SELECTION.cases(shapes, first, subject)[:FEW_SIZES]}
        return
    named = Selection(variants=(subject.text.variant,), extent=Extent.QUICK)
    for kind in (*all_kinds_of(subject.text.kernel), *calls.KINDS):
        found = {dtype: named.cases(kind, dtype, subject) for dtype in subject.dtypes}
        if chosen := {dtype: cases for dtype, cases in found.items() if cases}:
            yield kind, chosen


@pytest.mark.parametrize(
    "sources",
    [
        marked(backend, of_kernel, name=f"{backend}-{target}-{kernel}")
        for (backend, target, kernel), sources in groupby(SOURCES, lambda each: (*place(each), each.text.kernel))
        for of_kernel in [list(sources)]
    ],
)
def test_sources_of_a_kernel_are_right(
    sources: list[Subject], runners: Runners, arenas: Arenas, request: pytest.FixtureRequest
) -> None:
    stamps, counts = Stamps(), dict.fromkeys(("sources tried", "by stamp", "not tried"), 0)
    request.node.user_properties.append((STAMPED, counts))
    unable = None
    for subject in sources:
        due = stamps.due(subject)
        if due is Due.NOTHING:
            counts["by stamp"] += 1
        elif due is Due.LITTLE and not is_tried_in_a_fresh_clone(subject):
            counts["not tried"] += 1
            stamps.keep(subject, passed=False)
        else:
            try:
                passed = _try(subject, due, runners, arenas, request)
            except pytest.skip.Exception as skipped:  # the device computes in none of its formats
                counts["not tried"] += 1
                unable = skipped
            else:
                counts["sources tried"] += 1
                if passed:
                    stamps.keep(subject, passed=True)
    if unable is not None and not counts["sources tried"]:
        raise unable


def _try(subject: Subject, due: Due, runners: Runners, arenas: Arenas, request: pytest.FixtureRequest) -> bool:
    """Try a source. Returns whether all of it was tried: nothing was left out, and no format."""
    whole = True
    for kind, cases in cases_of(subject, due):
        runner, tallies = begin(request.config, subject, runners, list(cases), kind.name)
        whole = whole and len(tallies) == len(cases)
        for tally in tallies:
            run_kind(tally, runner, arenas, subject, kind, cases[tally.dtype])
            finish(request.node, subject, tally)
            whole = whole and (not tally.left_out or kind.name == SUBNORMALS)
    if due is Due.ALL:
        probes.draw(subject, runners, arenas, request)
    return whole
