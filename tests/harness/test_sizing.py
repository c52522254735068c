"""Budgets are kept, shapes only ever shrink, and estimates never run what they cannot afford."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from py_backends import registry
from py_backends.contract import Target
from py_backends.harness import estimates as estimating
from py_backends.harness.estimates import Estimates
from py_backends.harness.running_row import RunningRow
from py_backends.harness.sizing import affordable, cheapest, estimate, fair_cap, fair_caps, growing, in_words, least
from py_backends.results.spec import Spec
from py_backends.workers.runner import Prepared, Runner

MATMUL, VECADD = registry.problem("matmul"), registry.problem("vecadd")
Sizes = tuple[int, ...]

costs = st.lists(st.floats(0, 1e6), max_size=20)
budgets = st.floats(1e-3, 1e6)
problems_with_sizes = st.one_of(
    st.tuples(st.just(VECADD), st.tuples(st.integers(0, 2**40))),
    st.tuples(st.just(MATMUL), st.tuples(*[st.integers(0, 2**14)] * 3)),
)
seconds_of_a_run = st.floats(1e-9, 1e6)


class TestFairCap:
    @given(costs=costs, budget=budgets)
    def test_capped_costs_stay_within_the_budget_and_use_it_up(self, costs: list[float], budget: float) -> None:
        cap = fair_cap(costs, budget)
        total = math.fsum(min(cost, cap) for cost in costs)
        if math.isinf(cap):
            assert total <= budget * (1 + 1e-9)
        else:
            assert total == pytest.approx(budget)
            assert math.fsum(costs) >= budget * (1 - 1e-9)

    @given(costs=costs, budget=budgets)
    def test_a_cost_of_no_more_than_an_even_share_is_never_cut(self, costs: list[float], budget: float) -> None:
        cap = fair_cap(costs, budget)
        assert all(cost <= cap for cost in costs if cost <= 0.999 * budget / len(costs))

    @given(costs=costs, budget=budgets)
    def test_the_order_of_costs_does_not_matter(self, costs: list[float], budget: float) -> None:
        assert fair_cap(costs[::-1], budget) == fair_cap(costs, budget)

    def test_what_cheap_rows_leave_goes_to_the_dear_ones(self) -> None:
        assert fair_cap([1, 1, 100, 100], 22) == 10
        assert fair_cap([5, 5], 10) == math.inf
        assert fair_cap([], 10) == math.inf

    def test_kernels_share_evenly_however_many_rows_they_have(self) -> None:
        kernels = ["matmul"] * 4 + ["dot", "heat"]
        assert fair_caps(kernels, [10, 10, 10, 10, 6, 2], 18) == [2.5] * 4 + [math.inf] * 2, "dot and heat leave 10"
        assert fair_caps(kernels, [1] * 6, 18) == [math.inf] * 6
        assert fair_caps(["matmul"] * 4, [1, 1, 100, 100], 22) == [10] * 4, "one kernel has all"


@pytest.mark.parametrize(
    ("costs", "budget", "kept"),
    [
        ([5, 1, 3], 4, [1, 2]),
        ([5, 1, 3], 9, [0, 1, 2]),
        ([5, 1, 3], 8.9, [1, 2]),
        ([3, 2], 1, [1]),
        ([], 1, []),
        ([math.inf], 9, []),
        ([2, math.inf], 9, [0]),
    ],
)
def test_what_is_skipped_leaves_its_time_to_cheaper_rows(costs: list[float], budget: float, kept: list[int]) -> None:
    assert cheapest(costs, {}, budget) == kept


@pytest.mark.parametrize(
    ("runs", "found", "count"),
    [
        ([0.03, 0.02, 0.02, 0.001, 0.02], 0.001, 5),  # a neighbour takes a CPU for some hundredths of a second
        ([0.001, 0.002, 0.001, 0.001, 0.001], 0.001, 5),
        ([0.9, 0.8], 0.8, 2),
        ([0.04, 0.03, 0.04], 0.03, 3),
    ],
)
def test_short_runs_are_tried_more_often(runs: list[float], found: float, count: int) -> None:
    left = iter(runs)
    assert least(lambda: next(left)) == found
    assert len(runs) - len(list(left)) == count


class TestBaselines:
    """Two sizes, at each a baseline, which is dearest as its controls count, and two rows."""

    COSTS = (4, 1, 2, 40, 10, 20)
    BASELINES: ClassVar = {1: 0, 2: 0, 4: 3, 5: 3}

    @pytest.mark.parametrize(
        ("budget", "kept"),
        [
            (77, [0, 1, 2, 3, 4, 5]),
            (76, [0, 1, 2, 3, 4]),  # the slow row at the larger size
            (56, [0, 1, 2]),  # the larger size
            (6, [0, 1]),
            (1, [0, 1]),
        ],
    )
    def test_the_dearest_rows_go_first_then_whole_sizes(self, budget: float, kept: list[int]) -> None:
        assert cheapest(self.COSTS, self.BASELINES, budget) == kept

    @given(budget=budgets)
    def test_a_baseline_is_there_whatever_runs(self, budget: float) -> None:
        kept = cheapest(self.COSTS, self.BASELINES, budget)
        assert all(self.BASELINES[at] in kept for at in kept if at in self.BASELINES)


class TestAffordable:
    @given(case=problems_with_sizes, seconds=seconds_of_a_run, cap=budgets)
    def test_halves_all_dimensions_until_it_fits(self, case, seconds: float, cap: float) -> None:
        problem, sizes = case
        shape = affordable(problem, sizes, seconds, cap)
        halves = halvings(sizes)

        def takes(shape: Sizes) -> float:
            return seconds * problem.work(shape) / problem.work(sizes)

        if shape is None:
            assert seconds > cap
            assert all(takes(half) > cap for half in halves if problem.work(half) > 4096)
        else:
            assert takes(shape) <= cap
            assert shape in halves
            assert all(takes(larger) > cap for larger in halves[: halves.index(shape)]), "no smaller than it must be"

    @given(case=problems_with_sizes, seconds=seconds_of_a_run)
    def test_what_fits_is_left_alone(self, case, seconds: float) -> None:
        problem, sizes = case
        assert affordable(problem, sizes, seconds, cap=1.001 * seconds) == sizes

    @pytest.mark.parametrize("sizes", [(0,), (1,), (5,), (8,)])
    def test_what_cannot_be_halved_ends(self, sizes: Sizes) -> None:
        assert affordable(VECADD, sizes, seconds=1, cap=1e-9) is None
        assert affordable(MATMUL, sizes * 3, seconds=1, cap=1e-9) is None

    def test_no_time_at_all(self) -> None:
        assert affordable(VECADD, (1_000_000,), seconds=1, cap=-1) is None


def halvings(sizes: Sizes) -> list[Sizes]:
    """`sizes`, the half of them, the half of that, and so on."""
    shapes = [sizes]
    while max(shapes[-1]) > 1:
        shapes.append(tuple(size // 2 | 1 if size > 1 else size for size in shapes[-1]))
    return shapes


@given(case=problems_with_sizes)
def test_shapes_grow_from_a_small_one_to_the_one_asked_for(case) -> None:
    problem, sizes = case
    shapes = list(growing(problem, sizes))
    work = [problem.work(shape) for shape in shapes]
    assert shapes[-1] == sizes
    assert work == sorted(work)
    assert all(small <= size for shape in shapes for small, size in zip(shape, sizes, strict=True))
    assert all((small == 0) == (size == 0) for shape in shapes for small, size in zip(shape, sizes, strict=True))
    if min(sizes) > 200:  # where rounding to whole numbers does not matter
        assert work[0] <= 2 * 4096
        assert all(later <= 16 * earlier for earlier, later in pairwise(work))


class TestEstimate:
    @given(case=problems_with_sizes, rate=st.floats(1e-12, 1e-6), limit=st.floats(1e-6, 1))
    def test_is_right_where_time_is_proportional_to_work(self, case, rate: float, limit: float) -> None:
        problem, sizes = case
        ran: list[Sizes] = []

        def seconds_at(shape: Sizes) -> float:
            ran.append(shape)
            return rate * problem.work(shape)

        assert estimate(problem, sizes, seconds_at, limit) == pytest.approx(rate * problem.work(sizes))
        first, again, *others = ran
        assert first == again, "the first is run twice: what compiles at its first launch does so then"
        for before, shape in zip(ran, others, strict=False):
            fits = rate * problem.work(shape) <= limit * (1 + 1e-9)
            short_first_run = before == first and rate * problem.work(before) < 0.1
            assert fits or short_first_run, "only after a short run, with none before it, may one exceed the limit"

    @given(case=problems_with_sizes)
    def test_compilation_at_the_first_launch_does_not_count(self, case) -> None:
        problem, sizes = case
        assume(problem.work(sizes) > 1)
        launches = iter([100.0])

        def seconds_at(shape: Sizes) -> float:
            return next(launches, 1e-9 * problem.work(shape))

        assert estimate(problem, sizes, seconds_at, limit=1) == pytest.approx(1e-9 * problem.work(sizes))

    @pytest.mark.parametrize("slow", [32, 64, 128])
    def test_a_run_that_was_kept_from_running_does_not_count(self, slow: int) -> None:
        """As one of two threads that spin while the other has no core."""
        hiccups = iter([0.016])

        def seconds_at(shape: Sizes) -> float:
            usual = 1e-11 * MATMUL.work(shape)
            return next(hiccups, usual) if shape[0] == slow else usual

        sizes = 128, 128, 128
        limit = 4.1e-11 * slow**3  # the least with which no shape below is left out
        assert estimate(MATMUL, sizes, seconds_at, limit) == pytest.approx(1e-11 * MATMUL.work(sizes))
        assert next(hiccups, None) is None, "it was met"

    def test_shapes_that_take_next_to_nothing_are_left_out(self) -> None:
        """They took a fifth of a comparison's budget."""
        ran: list[int] = []

        def seconds_at(shape: Sizes) -> float:
            ran.append(shape[0])
            return 1e-5 + 1e-11 * MATMUL.work(shape)  # a call costs something by itself

        sizes = 512, 512, 512
        assert estimate(MATMUL, sizes, seconds_at, limit=0.3) == pytest.approx(1e-11 * MATMUL.work(sizes), rel=0.01)
        assert ran == [8, 8, 128, 512]

    def test_a_short_run_that_took_what_was_expected_is_extrapolated(self) -> None:
        """The largest sizes of a sweep are too long for its budget: to run each of them took a fifth of it."""
        ran: list[int] = []

        def seconds_at(shape: Sizes) -> float:
            ran.append(shape[0])
            return 5e-12 * MATMUL.work(shape)

        sizes = 4096, 4096, 4096
        assert estimate(MATMUL, sizes, seconds_at, limit=0.2) == pytest.approx(5e-12 * MATMUL.work(sizes))
        assert max(ran) == 2048

    @pytest.mark.parametrize("delay", [0.05, 0.099])
    def test_a_delay_of_every_short_run_is_not_extrapolated(self, delay: float) -> None:
        """On a loaded machine threads may wait for one another in every run of the smallest shapes."""
        sizes = 1500, 1200, 1000

        def seconds_at(shape: Sizes) -> float:
            usual = 1e-11 * MATMUL.work(shape)
            return usual if usual > 1e-4 else delay

        assert estimate(MATMUL, sizes, seconds_at, limit=0.2) == pytest.approx(1e-11 * MATMUL.work(sizes))

    def test_rows_of_one_kernel_share_the_shortest_run_of_a_shape(self) -> None:
        """The call of a kernel takes what the kernel alone took, although its last run at some shape was delayed."""
        spec = Spec("matmul", "avx", "cpu", "tuned", "float32", (256, 256, 256))
        row: Any = SimpleNamespace(spec=spec, problem=MATMUL, dtype=np.dtype("float32"), text=object())
        pool: Any = SimpleNamespace(case=lambda _, sizes, *__, **___: sizes)
        delays = iter([0.3, 0.3, 0.9, 0.9])  # two runs, and two again as the first two took longer than expected

        class Delayed:
            def whole_call(self, _: Any, sizes: Sizes) -> float:
                return next(delays) if sizes[0] == 64 else 1e-9 * MATMUL.work(sizes)

        runner = cast(Runner, Delayed())
        estimates = Estimates(pool, 60.0, lambda *_: None)
        limit = 4.1e-9 * 64**3  # the least with which no shape of this size is left out
        first, second = (estimates._seconds(row, runner, limit) for _ in range(2))
        assert next(delays, None) is None, "they were met"
        assert first == second


class MadeUpRunner:
    """Whose calls take what the work says, but for the first one at each shape. `slow`: seconds of that."""

    def __init__(self, pace: float, slow: float = 0.0) -> None:
        self._pace, self._slow, self._seen = pace, slow, set[Sizes]()

    def prepare(self, *_: Any) -> Prepared:
        return Prepared(0.0, None, first_launch=0.0)

    def whole_call(self, _: Any, sizes: Sizes) -> float:
        usual = self._pace * MATMUL.work(sizes)
        first = sizes not in self._seen
        self._seen.add(sizes)
        return max(usual, self._slow) if first else usual


def rows_for(monkeypatch: pytest.MonkeyPatch, runners: Mapping[str, MadeUpRunner]) -> Callable[[float], dict[str, Any]]:
    """What is decided for a row of each backend, with a budget: by backend, the shape that it runs at."""
    monkeypatch.setattr(estimating, "check_memory", lambda *_: None)

    def decided(budget: float) -> dict[str, Any]:
        rows = []
        for backend in runners:
            spec = Spec("matmul", backend, "cpu", "lecture", "float32", (1024,) * 3)
            text: Any = SimpleNamespace(kernel="matmul", variant="lecture", text="")
            rows.append(RunningRow(spec, Target("cpu"), text, sizes=spec.sizes))
        pool: Any = SimpleNamespace(
            case=lambda _, sizes, *__, **___: sizes, runner_of=lambda row, *_: runners[row.spec.backend]
        )
        found = Estimates(pool, budget, lambda *_: None).of(rows)
        estimating.shorten(found, 32, budget)
        return {row.spec.backend: row.sizes[0] for row in rows}

    return decided


def test_a_first_call_that_takes_long_shortens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for slow in "numpy", "avx":
        runners = {name: MadeUpRunner(1e-11, 5.0 * (name == slow)) for name in ("numpy", "avx")}
        assert rows_for(monkeypatch, runners)(60.0) == {"numpy": 1024, "avx": 1024}


def test_baselines_are_shortened_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its copies a baseline costs as much as three others, and all are compared with what it ran at."""
    paces = {"numpy": 5e-11, "avx": 5e-11, "openmp": 1e-10, "cpp": 5e-10}
    decided = rows_for(monkeypatch, {name: MadeUpRunner(pace) for name, pace in paces.items()})
    found = decided(25.0)
    assert found["numpy"] == 1024
    assert found["cpp"] < 1024
    assert decided(5.0)["numpy"] < 1024, "what takes more than half of the time is no baseline for it"


def test_times_in_words() -> None:
    assert in_words(0.25) == "about 0.25 s"
    assert in_words(89) == "about 89 s"
    assert in_words(119) == "about 119 s", "and not 1.2e+02 s"
    assert in_words(600) == "about 10 minutes"
    assert in_words(36_000) == "about 10 hours"
    assert in_words(864_000) == "about 10 days"
