"""Rounds of a search on a made-up machine: which sizes it goes to, where its rounds go, and when it has enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import pytest

from py_backends.commands.sweep import search as searching
from py_backends.contract import Target
from py_backends.harness.case import Case
from py_backends.harness.pairing import Group
from py_backends.harness.running_row import RunningRow
from py_backends.results.spec import Spec
from py_backends.workers.process import WorkerFailed
from py_backends.workers.runner import Runner, Sample

SIZES = tuple(2**power for power in range(6, 17))
Seconds = Callable[[int], float]
"""Of a kernel at a size; the baseline takes one at each."""


@dataclass
class Sizes:
    """As much of a case as a search needs."""

    sizes: tuple[int, ...]


def timed(backend: str, size: int) -> RunningRow:
    spec = Spec("vecadd", backend, "cpu", "lecture", "float32", (size,))
    row = RunningRow(spec, Target("cpu"), None, sizes=(size,), status="ok")
    return row.on(cast(Runner, None), cast(Case, Sizes((size,))))


def groups_of(backends: Sequence[str]) -> list[Group]:
    """At each size a baseline with two controls, and these backends."""
    made = []
    for size in SIZES:
        baseline = timed("numpy", size)
        rows = [timed(backend, size) for backend in backends]
        made.append(Group([baseline, *rows], baseline, [timed("numpy", size) for _ in range(2)]))
    return made


def search(
    groups: Sequence[Group], kernels: Mapping[str, Seconds], wholes: Mapping[str, Seconds], most: int = 200
) -> int:
    """Give samples to whom it chooses until it has enough, or for `most` rounds; how many rounds there were."""
    generator = np.random.default_rng(1)
    for number in range(most):
        chosen = searching.search(groups)
        if not chosen:
            return number
        for row in chosen:
            (size,), backend = row.case.sizes, row.spec.backend
            noise = math.exp(0.01 * generator.standard_normal())
            kernel, whole = (times.get(backend, lambda _: 1.0)(size) * noise for times in (kernels, wholes))
            row.samples[number] = Sample(upload=0.0, kernel=kernel, download=0.0, end_to_end=whole, drain=0.0)
    return most


def rounds_at(groups: Sequence[Group], backend: str) -> dict[int, int]:
    """How many rounds a backend had at each size that it came to."""
    rows = [row for group in groups for row in group.rows if row.spec.backend == backend]
    return {row.case.sizes[0]: len(row.samples) for row in rows if row.samples}


_lot = np.random.default_rng(3)
RESTLESS: dict[str, Seconds] = {"other": lambda _: float(_lot.choice([0.5, 2.0]))}
"""Twice as fast as the baseline or half as fast, by lot."""


def wins_from(first: int) -> Seconds:
    return lambda size: 0.5 if size >= first else 2.0


@pytest.mark.parametrize("first", SIZES)
def test_both_sides_of_the_answer_are_clear_in_the_end(first: int) -> None:
    groups = groups_of(["other"])
    taken = search(groups, {"other": wins_from(first)}, {"other": wins_from(first)})
    assert taken < 40
    rounds = rounds_at(groups, "other")
    deciding = [size for size in rounds if size >= first / 2]
    assert {first, max(SIZES[0], first // 2)} <= rounds.keys()
    assert all(rounds[size] >= 6 for size in deciding), "below that no test tells anything"
    assert len(rounds) < len(SIZES) - 2


def test_sizes_that_decide_nothing_have_but_a_look() -> None:
    groups = groups_of(["other"])
    search(groups, {"other": wins_from(2**14)}, {"other": wins_from(2**14)})
    rounds = rounds_at(groups, "other")
    assert {rounds[size] for size in rounds if size < 2**13} == {3}


def test_a_size_that_was_begun_has_its_look() -> None:
    """A single sample there would be in the answer, and make it unclear."""
    groups = groups_of(["other"])
    begun = groups[1]
    for row in begun.sampled:
        row.samples[0] = Sample(upload=0.0, kernel=1.0, download=0.0, end_to_end=1.0, drain=0.0)
    search(groups, {"other": wins_from(2**16)}, {"other": wins_from(2**16)})
    assert rounds_at(groups, "other")[SIZES[1]] == 3


def test_the_kernel_and_whole_calls_have_each_their_answer() -> None:
    groups = groups_of(["other"])
    search(groups, {"other": wins_from(2**7)}, {"other": wins_from(2**15)})
    assert {2**6, 2**7, 2**14, 2**15} <= rounds_at(groups, "other").keys()


def test_who_loses_tenfold_takes_no_time_from_the_others() -> None:
    groups = groups_of(["slow", "close"])
    times: dict[str, Seconds] = {"slow": lambda _: 50.0, "close": lambda _: 0.85}
    search(groups, times, times)
    assert set(rounds_at(groups, "slow").values()) == {3}
    assert max(rounds_at(groups, "close").values()) > 6


def test_who_is_compared_is_in_one_round_with_its_baseline_and_both_controls() -> None:
    groups = groups_of(["other"])
    search(groups, {"other": wins_from(2**10)}, {"other": wins_from(2**10)})
    for group in groups:
        baseline, other = (set(row.samples) for row in group.rows)
        assert baseline == other
        assert all(set(control.samples) == baseline for control in group.controls)


def test_what_no_round_makes_clear_does_not_end() -> None:
    groups = groups_of(["other"])
    assert search(groups, RESTLESS, RESTLESS, most=60) == 60


@pytest.mark.parametrize("which", ["kernel", "whole"])
def test_one_measure_that_is_clear_does_not_end_the_other(which: str) -> None:
    times: list[dict[str, Seconds]] = [RESTLESS, {"other": lambda _: 0.5}]
    kernels, wholes = times if which == "kernel" else times[::-1]
    assert search(groups_of(["other"]), kernels, wholes, most=60) == 60


def test_who_is_faster_by_less_than_a_win_needs_does_not_seem_to_win() -> None:
    """Else there would be no size between to look at, and no crossover."""
    groups = groups_of(["other"])
    times: dict[str, Seconds] = {"other": lambda size: 0.5 if size >= 2**11 else 1 / 1.05}
    assert search(groups, times, times) < 100
    assert {2**10, 2**11} <= rounds_at(groups, "other").keys()


def test_without_a_baseline_all_are_in_every_round() -> None:
    groups = [Group([timed("other", size)], None) for size in SIZES]
    assert len(searching.search(groups)) == len(SIZES)


def test_where_only_one_size_has_no_baseline_its_rows_still_have_their_times() -> None:
    groups = groups_of(["other"])
    alone = timed("other", SIZES[4])
    groups[4] = Group([alone], None)
    search(groups, {"other": wins_from(2**12)}, {"other": wins_from(2**12)})
    assert len(alone.samples) == 6


def test_who_failed_is_not_waited_for() -> None:
    groups = groups_of(["other", "failing"])
    for group in groups:
        group.rows[-1].failed = WorkerFailed("crashed", "as expected")
    assert search(groups, {"other": wins_from(2**8)}, {"other": wins_from(2**8)}) < 40
    assert rounds_at(groups, "failing") == {}
