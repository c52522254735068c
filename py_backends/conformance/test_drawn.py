"""What hypothesis draws: sizes, values, layouts and sequences of calls. It shrinks what fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from py_backends.install import pip_install

pytest.importorskip("hypothesis", reason=f"hypothesis draws these cases: {pip_install('conformance')}")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from py_backends.conformance.any_kernel import refusal, taken
from py_backends.conformance.calls import Call, Layout, is_plain
from py_backends.conformance.plugin import SELECTION, begin, finish, marked
from py_backends.conformance.running import Arenas, Runners, run_call, told
from py_backends.conformance.selection import Selection, Subject
from py_backends.conformance.sizes import fitting
from py_backends.conformance.tally import DRAWN, REFERENCE, Tally
from py_backends.conformance.trials import Inputs, Shapes, Trial, answer, drawn_from, named
from py_backends.contract import Problem
from py_backends.errors import BrokenKernel
from py_backends.workers.process import WorkerFailed

_EXAMPLES = {(False, False): 300, (True, False): 15, (False, True): 12, (True, True): 1}
"""How many sequences are drawn for a source on a target, by whether the run is quick and work items are interpreted."""
_LEAST_NORMAL = 1e-12
"""No number from here on, nor a product of three, is subnormal in float32."""


class _NoAnswer(BaseException):
    """The problem is broken. This is not shrunk, since no source is at fault."""


class _Ended(BaseException):
    """The kernel's process ended. This is not shrunk, since each try would start another process."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each source: of calls where its target has a device, of trials where it is emulated."""
    selection = metafunc.config.stash[SELECTION]
    emulated = "arenas" in metafunc.fixturenames
    wanted = selection.case is None and (not selection.kinds or DRAWN in selection.kinds)
    subjects = [each for each in selection.subjects() if wanted and each.target.emulated == emulated]
    subjects = [each for each in subjects if refusal(each.text.kernel) is None]
    metafunc.parametrize("subject", [marked(each.text.backend, each, name=each.label) for each in subjects])


def test_drawn_calls_end_as_they_must(
    subject: Subject, selection: Selection, runners: Runners, request: pytest.FixtureRequest
) -> None:
    """Sequences of calls of the Python function. A failing sequence is shrunk."""
    runner, tallies = begin(request.config, subject, runners, subject.dtypes, DRAWN)
    run = partial(run_call, runner, subject.text)
    _draw(request.node, subject, selection, tallies, _calls(subject), run)


def test_drawn_cases_hold(
    subject: Subject, selection: Selection, runners: Runners, arenas: Arenas, request: pytest.FixtureRequest
) -> None:
    """Sequences of cases through a worker."""
    runner, tallies = begin(request.config, subject, runners, subject.dtypes, DRAWN)
    text = subject.text

    def run(dtype: str, trial: Trial) -> str | None:
        try:
            return arenas.run(runner, text, answer(text.problem, trial, np.dtype(dtype)))
        except WorkerFailed as failed:
            return told(failed)

    _draw(request.node, subject, selection, tallies, _trials(subject), run)


def _draw(
    item: pytest.Item,
    subject: Subject,
    selection: Selection,
    tallies: Sequence[Tally],
    cases: st.SearchStrategy[Any],
    run: Callable[[str, Any], str | None],
) -> None:
    """Run drawn sequences: the same in every quick run, and others in every thorough one.

    The test reports what holds first, since it ends with what fails.
    """
    of_dtype, last = {tally.dtype: tally for tally in tallies}, tallies[0]

    @settings(
        max_examples=_EXAMPLES[selection.quick, subject.target.interpreted],
        derandomize=selection.quick,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(dtype=st.sampled_from(list(of_dtype)), sequence=st.lists(cases, min_size=1, max_size=3))
    def holds(dtype: str, sequence: list[Any]) -> None:
        nonlocal last
        last = of_dtype[dtype]
        last.cases += 1
        try:
            wrong = next(filter(None, (run(dtype, case) for case in sequence)), None)
        except WorkerFailed as failed:
            raise _Ended(f"{told(failed)}, in {dtype}, at {sequence}") from None
        except BrokenKernel as broken:
            raise _NoAnswer(broken.reason) from None
        assert wrong is None, f"{wrong}, in {dtype}, at {sequence}"

    try:
        holds()
    except (AssertionError, Flaky, _Ended) as failed:
        last.failures.append(("the smallest found", str(failed)))
    except _NoAnswer as broken:
        last.failures.append((REFERENCE, str(broken)))
    for tally in sorted(tallies, key=lambda tally: len(tally.failures)):
        finish(item, subject, tally)


def _sizes(problem: Problem) -> st.SearchStrategy[Any]:
    longest = 300 if len(problem.dimensions) == 1 else 40
    of_arrays = [st.integers(0, longest) for _ in problem.dimensions]
    real = st.floats(-4, 4, width=16)  # exact in every format
    numbers = [real if name in problem.reals else st.integers(0, 5) for name in problem.numbers]
    return st.tuples(*of_arrays, *numbers).map(partial(_fitting, problem))


def _fitting(problem: Problem, sizes: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Sizes near these that the problem has, with these numbers or else with others. Others where none are near."""
    usual = problem.whole_sizes(sizes[: len(problem.dimensions)])
    return next(iter(fitting(problem, [sizes, usual])), None) or taken(problem)


def _values(subject: Subject) -> st.SearchStrategy[tuple[float, ...]]:
    """A few values that inputs are made of; none for seeded inputs."""
    least = 0.0 if subject.target.subnormals else _LEAST_NORMAL
    if subject.text.problem.rule == "bitwise":
        value = st.floats()
    else:  # no overflow, since then infinities may be anything
        value = st.floats(-1e6, 1e6) | st.sampled_from([0.0, -0.0, 1e-40, 1e-310])
    return st.lists(value.filter(lambda each: not 0 < abs(each) < least), max_size=5).map(tuple)


def _layouts() -> st.SearchStrategy[Layout]:
    return st.builds(
        Layout,
        order=st.sampled_from("CF"),
        steps=st.lists(st.sampled_from([1, -1, 2, -2, 3]), max_size=2).map(tuple),
        padding=st.integers(0, 5),
        offset=st.sampled_from([0, 4, 8, 16, 1, 2, 3, 12, 36]),
        read_only=st.booleans(),
    )


def _calls(subject: Subject) -> st.SearchStrategy[Call]:
    problem = subject.text.problem
    arrays = len(problem.inputs)
    own = _layouts().filter(lambda layout: not layout.read_only)
    common = {
        "name": st.just("drawn"),
        "sizes": _sizes(problem),
        "layouts": st.lists(_layouts(), min_size=1, max_size=arrays).map(tuple),
        "seed": st.integers(0, 2**31),
        "values": _values(subject),
    }
    with_out = st.builds(Call, **common, out=st.none() | own)
    sharing = st.builds(Call, **common, shares=st.integers(0, arrays - 1), shift=st.integers(-20, 20))
    return with_out | sharing if is_plain(problem) else with_out


def _trials(subject: Subject) -> st.SearchStrategy[Trial]:
    problem = subject.text.problem

    def trial(sizes: tuple[int, ...], values: tuple[float, ...], starts: list[int], seed: int) -> Trial:
        def draw(shapes: Shapes, dtype: np.dtype[Any], _: np.random.Generator) -> Inputs:
            return drawn_from(values, shapes, dtype, np.random.default_rng(seed))

        return Trial(f"{named(sizes)} of {values}, starts {starts}, seed {seed}", sizes, draw, starts=tuple(starts))

    starts = st.lists(st.integers(0, 20), min_size=1, max_size=3)
    return st.builds(trial, _sizes(problem), _values(subject), starts, st.integers(0, 2**31))
