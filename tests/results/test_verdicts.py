"""Verdicts: right about made-up machines whose truth is known, and never surer than the rounds allow."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from conftest import after_a_change

from py_backends.results.verdicts import (
    FASTER,
    LEAST_ROUNDS,
    MARGIN,
    NEW_PROCESSES,
    SAME,
    SLOWER,
    UNCLEAR,
    Ratio,
    is_decided,
    leads,
    ratio,
    verdicts,
)

ROUNDS, NOISE = 25, 0.02


def noisy(generator: np.random.Generator, truth: float, rounds: int = ROUNDS, noise: float = NOISE) -> list[float]:
    """Ratios as a shared machine gives them: about `truth`, with long tails on both sides."""
    return [truth * math.exp(noise * deviation) for deviation in generator.standard_t(3, rounds)]


def judged(all_ratios: Sequence[Sequence[float]]) -> list[str]:
    return verdicts([ratio(ratios) for ratios in all_ratios])


class TestRatio:
    def test_the_interval_holds_the_truth_about_as_often_as_it_says(self) -> None:
        generator = np.random.default_rng(2)
        found = [ratio(noisy(generator, 1.3)) for _ in range(300)]
        held = np.mean([(each.low or 0) <= 1.3 <= (each.high or 0) for each in found])
        assert 0.93 <= held <= 0.99

    def test_faster_and_slower_are_treated_alike(self) -> None:
        ratios = noisy(np.random.default_rng(4), 1.1)
        found, inverse = ratio(ratios), ratio([1 / each for each in ratios])
        assert found.median == pytest.approx(1 / inverse.median)
        assert found.low == pytest.approx(1 / (inverse.high or 0))

    def test_too_few_rounds_have_no_interval(self) -> None:
        found = ratio([1.0] * (LEAST_ROUNDS - 1))
        assert (found.median, found.low, found.high) == (1.0, None, None)
        assert not found.lies_within(1.0)

    @pytest.mark.parametrize(
        ("low", "high", "decided"), [(0.99, 1.01, True), (0.975, 1.01, False), (1.02, 1.04, False)]
    )
    def test_is_decided_where_it_can_hardly_be_faster_or_slower(self, low: float, high: float, decided: bool) -> None:
        found = Ratio(math.sqrt(low * high), low, high, np.zeros(20), range(20))
        assert [is_decided(found, each) for each in (SAME, FASTER, SLOWER)] == [decided, True, True]


class TestVerdicts:
    @pytest.mark.parametrize(("truth", "said"), [(1.0, "same"), (1.2, "faster"), (0.8, "slower")])
    def test_say_what_is_so(self, truth: float, said: str) -> None:
        generator = np.random.default_rng(5)
        assert judged([noisy(generator, truth) for _ in range(20)]) == [said] * 20

    def test_what_surely_differs_by_more_than_one_per_cent_does(self) -> None:
        assert judged([[1.03] * ROUNDS, [1 / 1.03] * ROUNDS, [1.009] * ROUNDS]) == [FASTER, SLOWER, SAME]

    def test_nothing_is_the_same_that_may_differ_by_a_tenth(self) -> None:
        within = [1 / 1.09, 1.09] * 15
        assert judged([within, [1 / 1.11, 1.11] * 15]) == [SAME, UNCLEAR]

    @pytest.mark.slow
    @pytest.mark.parametrize("rows", [1, 20])
    @pytest.mark.parametrize("truth", [1 + MARGIN, 1 / (1 + MARGIN)])
    def test_one_may_stop_at_the_first_claim(self, rows: int, truth: float) -> None:
        """At the margin every round is a fair coin: whoever looks after each is wrong in one run of twenty at most."""
        generator = np.random.default_rng(rows)
        runs = truth * np.exp(NOISE * generator.standard_normal((100, rows, 40)))
        wrong = sum(
            any({FASTER, SLOWER} & {*judged(run[:, :looked].tolist())} for looked in range(LEAST_ROUNDS, 41, 4))
            for run in runs
        )
        assert wrong <= 5

    def test_what_is_sure_of_one_row_is_not_of_many(self) -> None:
        one, others = [1.5] * 8, [[1.0, 1.02] * 4] * 40
        assert judged([one]) == [FASTER]
        assert judged([one, *others])[0] == UNCLEAR

    @pytest.mark.parametrize(("rows", "needed"), [(1, 7), (8, 10), (100, 14)])
    def test_few_rounds_that_agree_are_enough(self, rows: int, needed: int) -> None:
        for truth, said in (1.5, FASTER), (0.7, SLOWER):
            assert judged([[truth] * needed] * rows) == [said] * rows
            assert judged([[truth] * (needed - 1)] * rows) == [UNCLEAR] * rows

    def test_a_claim_stays(self) -> None:
        assert judged([[1.4] * 7 + [1.0]]) == [FASTER]

    def test_a_claim_holds_in_each_process(self) -> None:
        """Some processes are a tenth faster than others for as long as they live."""
        first = NEW_PROCESSES[0]
        for other in (1.0, 0.9):
            assert judged([[1.1] * first + [other] * (first - 1)]) == [UNCLEAR], "seven agreed before"
        assert judged([[1.1] * first + [1.05] * 16]) == [FASTER]
        assert judged([[1.1] * first + [1.0] * 2]) == [FASTER], "two rounds tell nothing of a process"

    def test_a_claim_of_one_process_is_no_end(self) -> None:
        one, two = (ratio([1.2] * (NEW_PROCESSES[0] + more)) for more in (0, 3))
        assert [is_decided(each, FASTER) for each in (one, two)] == [False, True]
        assert is_decided(ratio([2.0] * LEAST_ROUNDS), FASTER), "no process is twice as fast as its equals"
        rounds_left_out = {number: 1.2 for number in range(3, 14) if number != 9}
        assert is_decided(ratio(rounds_left_out), FASTER)

    def test_what_is_tenfold_in_each_of_a_few_rounds_needs_no_test(self) -> None:
        few = [[0.09] * 3, [0.09, 0.11, 0.09], [11.0] * 3, [11.0] * 2, [11.0, 0.09, 11.0], [2.0] * 5]
        assert judged(few) == [SLOWER, UNCLEAR, FASTER, UNCLEAR, UNCLEAR, UNCLEAR]
        assert judged([[2.0] * 7, *[[0.01] * 7] * 100])[0] == FASTER, "and costs the others nothing"

    def test_with_more_rounds_less_is_far(self) -> None:
        near = [[1.0, 1.2] * 4] * 100
        some = [[1.6] * 6, [0.6] * 6, [1.6] * 5, [1.6, 1.6, 1.6, 1.4, 1.6, 1.6], [1.6, 1.6, 1.6, 0.6, 1.6, 1.6]]
        assert judged([*some, *near])[: len(some)] == [FASTER, SLOWER, UNCLEAR, UNCLEAR, UNCLEAR]

    def test_rows_that_had_but_a_look_cost_the_others_nothing(self) -> None:
        assert judged([[2.0] * 7, *[[2.0] * 3] * 100])[0] == FASTER
        assert judged([[1.4] * 7, *[[1.0, 1.2] * 4] * 100])[0] == UNCLEAR

    def test_a_drift_of_a_fifth_is_covered_or_unclear(self) -> None:
        """A row that becomes 20% slower within the run: its interval holds what the last half shows."""
        generator = np.random.default_rng(6)
        for _ in range(50):
            drifting = [each / (1 + 0.2 * at / 40) for at, each in enumerate(noisy(generator, 1.0, 40, 0.03))]
            found, last = ratio(drifting), ratio(drifting[20:])
            (said,) = verdicts([found])
            assert found.low is not None
            assert said in {UNCLEAR, SLOWER} or found.low <= last.median

    def test_a_neighbour_that_comes_and_goes_makes_no_row_faster_or_slower(self) -> None:
        """For ten rounds of twenty it delays every other sample of equal rows, by up to several times their time."""
        generator = np.random.default_rng(7)

        def times(rows: int) -> np.ndarray:
            delays = generator.exponential(1.0, (rows, 40)) * generator.integers(0, 2, (rows, 40))
            return (1 + delays * (np.arange(40) // 10 % 2)) * np.exp(NOISE * generator.standard_t(3, (rows, 40)))

        for _ in range(50):
            baseline, rows = times(1), times(30)
            assert not {FASTER, SLOWER} & {*judged(baseline / rows)}


@after_a_change("py_backends/results")
class TestTwoRuns:
    """The new run's median over the old run's, by the same verdicts."""

    @pytest.mark.parametrize(("truth", "said"), [(1.0, "same"), (1.2, "faster"), (0.8, "slower")])
    def test_say_what_is_so(self, truth: float, said: str) -> None:
        generator = np.random.default_rng(9)
        found = [ratio(noisy(generator, 3 * truth), noisy(generator, 3.0)) for _ in range(20)]
        assert verdicts(found, [0.07] * 20) == [said] * 20

    def test_the_interval_holds_the_truth_about_as_often_as_it_says(self) -> None:
        generator = np.random.default_rng(10)
        found = [ratio(noisy(generator, 1.3, 40), noisy(generator, 2.6, 20)) for _ in range(300)]
        assert 0.92 <= np.mean([(each.low or 0) <= 0.5 <= (each.high or 0) for each in found]) <= 0.99

    @pytest.mark.parametrize(("old", "new", "noise"), [(6, 6, 1), (30, 30, 4), (60, 15, 4)])
    def test_at_the_margin_hardly_anything_is_claimed(self, old: int, new: int, noise: float) -> None:
        """Of 20 rows together in one diff of twenty, however much more the rounds of one run vary."""
        generator = np.random.default_rng(11)
        wrong = 0
        for _ in range(60):
            found = []
            for _ in range(20):
                before = np.exp(generator.normal(0, 0.02, old))
                after = 1.05 * np.exp(generator.normal(0, 0.02 * noise, new))
                found.append(ratio(after.tolist(), before.tolist()))
            wrong += not {FASTER, SLOWER}.isdisjoint(verdicts(found, [0.05] * 20))
        assert wrong <= 6

    def test_rounds_that_all_lie_apart_are_clear(self) -> None:
        assert verdicts([ratio([2.0] * ROUNDS, [1.0] * ROUNDS)], [0.05]) == ["faster"]

    @pytest.mark.parametrize(("old", "new"), [(LEAST_ROUNDS - 1, ROUNDS), (ROUNDS, LEAST_ROUNDS - 1)])
    def test_too_few_rounds_of_either_have_no_interval(self, old: int, new: int) -> None:
        found = ratio([2.0] * new, [1.0] * old)
        assert (found.median, found.low, found.high) == (2.0, None, None)
        assert verdicts([found], [0.05]) == ["unclear"]


class TestLeads:
    def test_say_what_is_so(self) -> None:
        generator = np.random.default_rng(1)
        quiet = (1 + 0.001 * generator.standard_normal(ROUNDS)).tolist()
        restless = noisy(generator, 1.0, noise=0.3)
        found = [ratio(each) for each in (noisy(generator, 2.0), quiet, restless)]
        assert leads(found) == [FASTER, SAME, UNCLEAR]

    def test_one_may_stop_at_the_first_clear_answer(self) -> None:
        """At the margin every round is a fair coin, and nobody is behind."""
        runs = (1 + MARGIN) * np.exp(NOISE * np.random.default_rng(7).standard_normal((100, 40)))
        assert sum(any(leads([ratio(run[:n].tolist())]) == [FASTER] for n in range(1, 41)) for run in runs) <= 5

    @pytest.mark.parametrize(("rivals", "needed"), [(1, 7), (11, 14)])
    def test_few_rounds_that_agree_tell_whichever_is_the_quickest(self, rivals: int, needed: int) -> None:
        assert leads([ratio([1.5] * needed)] * rivals) == [FASTER] * rivals
        assert leads([ratio([1.5] * (needed - 1))] * rivals) == [UNCLEAR] * rivals

    def test_who_takes_tenfold_in_each_of_a_few_rounds_is_behind_and_no_rival(self) -> None:
        found = [ratio(each) for each in ([11.0] * 3, [11.0, 9.0, 11.0], [11.0] * 2)]
        assert leads(found) == [FASTER, UNCLEAR, UNCLEAR]
        assert leads([ratio([1.5] * 7), *[ratio([11.0] * 3)] * 10]) == [FASTER] * 11
