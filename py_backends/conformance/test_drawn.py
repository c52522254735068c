"""What hypothesis draws: sizes, values, layouts and sequences of calls. It makes what fails as small as it can."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pytest

from py_backends.install import pip_install

pytest.importorskip("hypothesis", reason=f"hypothesis draws these cases: {pip_install('test')}")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from py_backends.conformance.calling import Caller
from py_backends.conformance.calls import Call, Layout
from py_backends.conformance.calls import Subject as Whose
from py_backends.conformance.plugin import SELECTION, able_dtypes, fail_if_hung, finish, marked_subject
from py_backends.conformance.running import Arenas, Outcome
from py_backends.conformance.selection import Selection, Subject
from py_backends.conformance.sizes import fitting
from py_backends.conformance.tally import DRAWN
from py_backends.conformance.trials import DTYPES, Inputs, Trial, named, prepare
from py_backends.contract import Problem, Target
from py_backends.errors import BrokenKernel
from py_backends.harness.runner import Runner
from py_backends.harness.workers import WorkerFailed

_EXAMPLES = {"thorough": 300, "quick": 15, "interpreted": 12, "quick interpreted": 2}
"""Sequences of calls that are drawn for each text on each target."""


class _Ended(BaseException):
    """The process of the kernel ended: not shrunk, since each try would start another."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each text: of calls where its target has its device, of results where it is emulated."""
    selection = metafunc.config.stash[SELECTION]
    emulated = "arenas" in metafunc.fixturenames
    wanted = selection.case is None and (not selection.kinds or DRAWN in selection.kinds)
    subjects = [each for each in selection.subjects() if each.target.emulated == emulated] if wanted else []
    metafunc.parametrize("subject", [marked_subject(subject) for subject in subjects])


def test_drawn_calls_end_as_they_must(
    subject: Subject,
    selection: Selection,
    runner: Callable[[str, Target], Runner],
    request: pytest.FixtureRequest,
) -> None:
    """Sequences of calls of the Python function; a sequence that fails is shrunk."""
    text, target = subject
    its_runner = runner(text.backend, target)
    process = Caller(its_runner)

    def run(dtype: str, sequence: Sequence[Call]) -> str | None:
        whose = Whose(text.kernel, text.variant, text.backend, target.name, dtype)
        found = process.ask("call", whose, sequence)
        return None if found is None else found[1]

    able = able_dtypes(request.config, subject, its_runner, DTYPES)
    _draw(request.node, subject, selection, able, _calls(text.problem), run)


def test_drawn_cases_hold(
    subject: Subject,
    selection: Selection,
    runner: Callable[[str, Target], Runner],
    arenas: Arenas,
    request: pytest.FixtureRequest,
) -> None:
    """Sequences of cases through a worker."""
    text, target = subject
    its_runner = runner(text.backend, target)

    def run(dtype: str, sequence: Sequence[Trial]) -> str | None:
        cases = (prepare(text.problem, trial, np.dtype(dtype)) for trial in sequence)
        wrong = (arenas.run(its_runner, text, case, again=False) for case in cases)
        try:
            return next((reason for reason in wrong if reason), None)
        except BrokenKernel as broken:
            return broken.reason

    able = able_dtypes(request.config, subject, its_runner, DTYPES)
    _draw(request.node, subject, selection, able, _trials(text.problem), run)


def _draw(
    item: pytest.Item,
    subject: Subject,
    selection: Selection,
    dtypes: Sequence[str],
    elements: st.SearchStrategy[Any],
    run: Callable[[str, Sequence[Any]], str | None],
) -> None:
    """Run drawn sequences; the same in every quick run, and others in every thorough one."""
    fail_if_hung(item.config, subject)
    ran, last = dict.fromkeys(dtypes, 0), [dtypes[0]]

    @settings(
        max_examples=_EXAMPLES[selection.extent(subject.target)],
        derandomize=selection.quick,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(dtype=st.sampled_from(dtypes), sequence=st.lists(elements, min_size=1, max_size=3))
    def holds(dtype: str, sequence: list[Any]) -> None:
        ran[dtype] += 1
        last[:] = [dtype]
        try:
            wrong = run(dtype, sequence)
        except WorkerFailed as failed:
            raise _Ended(f"{failed.status}: {failed.reason}, in {dtype}, at {sequence}") from None
        assert wrong is None, f"{wrong}, in {dtype}, at {sequence}"

    outcomes = {dtype: Outcome() for dtype in dtypes}
    try:
        holds()
    except (AssertionError, Flaky, _Ended) as failed:
        outcomes[last[0]].failures.append(("the smallest found", str(failed)))
    for dtype, outcome in sorted(outcomes.items(), key=lambda each: len(each[1].failures)):
        outcome.ran = [f"example {example}" for example in range(ran[dtype])]
        finish(item, outcome, subject, dtype, DRAWN)


def _sizes(problem: Problem) -> st.SearchStrategy[tuple[int, ...]]:
    longest = 300 if len(problem.dimensions) == 1 else 40
    drawn = st.tuples(*[st.integers(0, longest) for _ in problem.dimensions])
    return drawn.map(lambda sizes: fitting(problem, [sizes])).filter(bool).map(itemgetter(0))


def _values(problem: Problem) -> st.SearchStrategy[tuple[float, ...]]:
    """A few values that inputs are made of; none for seeded ones."""
    if problem.rule == "bitwise":
        value = st.floats()
    else:  # no overflow, beside which infinities may be anything
        value = st.floats(-1e6, 1e6) | st.sampled_from([0.0, -0.0, 1e-40, 1e-310])
    return st.lists(value, max_size=5).map(tuple)


def _layouts() -> st.SearchStrategy[Layout]:
    return st.builds(
        Layout,
        order=st.sampled_from("CF"),
        steps=st.lists(st.sampled_from([1, -1, 2, -2, 3]), max_size=2).map(tuple),
        padding=st.integers(0, 5),
        offset=st.sampled_from([0, 4, 8, 16, 1, 2, 3, 12, 36]),
        read_only=st.booleans(),
    )


def _calls(problem: Problem) -> st.SearchStrategy[Call]:
    arrays = len(problem.shapes(problem.default_sizes)) - 1
    own = _layouts().filter(lambda layout: not layout.read_only)
    common = {
        "name": st.just("drawn"),
        "sizes": _sizes(problem),
        "layouts": st.lists(_layouts(), min_size=1, max_size=arrays).map(tuple),
        "seed": st.integers(0, 2**31),
        "values": _values(problem),
    }
    with_out = st.builds(Call, **common, out=st.none() | own)
    sharing = st.builds(Call, **common, shares=st.integers(0, arrays - 1), shift=st.integers(-20, 20))
    return with_out | sharing


def _trials(problem: Problem) -> st.SearchStrategy[Trial]:
    def trial(sizes: tuple[int, ...], values: tuple[float, ...], starts: list[int], seed: int) -> Trial:
        def draw(problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any], _: np.random.Generator) -> Inputs:
            generator = np.random.default_rng(seed)
            shapes = problem.shapes(sizes)[:-1]
            if not values:
                return [generator.standard_normal(shape).astype(dtype) for shape in shapes]
            return [generator.choice(np.array(values).astype(dtype), shape) for shape in shapes]

        return Trial(f"{named(sizes)} of {values}, starts {starts}, seed {seed}", sizes, draw, starts=tuple(starts))

    starts = st.lists(st.integers(0, 20), min_size=1, max_size=3)
    return st.builds(trial, _sizes(problem), _values(problem), starts, st.integers(0, 2**31))
