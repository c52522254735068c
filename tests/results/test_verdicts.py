"""Verdicts: right about made-up machines whose truth is known, and never surer than the rounds allow."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from py_backends.results.verdicts import (
    FASTER,
    LEAST_ROUNDS,
    NARROWEST_BAND,
    NOT_FASTER,
    SAME,
    UNCLEAR,
    WIDEST_SAME,
    Ratio,
    band,
    edge,
    leads,
    ratio,
    verdicts,
    wins,
)

ROUNDS, NOISE = 25, 0.02


def noisy(generator: np.random.Generator, truth: float, rounds: int = ROUNDS) -> list[float]:
    """Ratios as a shared machine gives them: about `truth`, with long tails on both sides."""
    return [truth * math.exp(NOISE * deviation) for deviation in generator.standard_t(3, rounds)]


def judged(all_ratios: Sequence[Sequence[float]], width: float | None) -> list[str]:
    return verdicts([ratio(ratios, 999) for ratios in all_ratios], [width] * len(all_ratios))


class TestBand:
    def test_holds_about_95_percent_of_normal_ratios(self) -> None:
        logarithms = np.random.default_rng(1).normal(0, 0.03, 10_000)
        assert np.mean(np.abs(logarithms) <= math.log1p(band(np.exp(logarithms)) or 0)) == pytest.approx(0.95, abs=0.01)

    def test_few_outliers_do_not_widen_it(self) -> None:
        quiet = [1.02, 0.98] * 10
        assert band([*quiet, 3.0, 0.2]) == pytest.approx(band(quiet), rel=0.05)

    def test_a_copy_that_is_always_slower_widens_it(self) -> None:
        assert (band([0.9] * ROUNDS) or 0) > 0.1

    def test_is_never_narrower_than_what_somebody_cares_for(self) -> None:
        assert band([1.0001] * ROUNDS) == NARROWEST_BAND

    def test_too_few_rounds_make_none(self) -> None:
        assert band([1.0] * (LEAST_ROUNDS - 1)) is None


class TestRatio:
    def test_the_interval_holds_the_truth_about_as_often_as_it_says(self) -> None:
        generator = np.random.default_rng(2)
        found = [ratio(noisy(generator, 1.3), 999) for _ in range(300)]
        held = np.mean([(each.low or 0) <= 1.3 <= (each.high or 0) for each in found])
        assert 0.90 <= held <= 0.99

    def test_the_same_ratios_have_the_same_interval(self) -> None:
        ratios = noisy(np.random.default_rng(3), 1.0)
        first, second = ratio(ratios, 999), ratio(ratios, 999)
        assert (first.median, first.low, first.high) == (second.median, second.low, second.high)

    def test_faster_and_slower_are_treated_alike(self) -> None:
        ratios = noisy(np.random.default_rng(4), 1.1)
        found, inverse = ratio(ratios, 9999), ratio([1 / each for each in ratios], 9999)
        assert found.median == pytest.approx(1 / inverse.median)
        assert found.low == pytest.approx(1 / (inverse.high or 0), rel=0.01)

    def test_too_few_rounds_have_no_interval(self) -> None:
        found = ratio([1.0] * (LEAST_ROUNDS - 1), 999)
        assert (found.median, found.low, found.high) == (1.0, None, None)
        assert not found.converged(0.5)

    @pytest.mark.parametrize(("half_width", "enough"), [(0.009, True), (0.011, False)])
    def test_is_narrow_enough_at_half_the_band(self, half_width: float, enough: bool) -> None:
        found = Ratio(2.0, 2 * math.exp(-half_width), 2 * math.exp(half_width), np.zeros(9))
        assert found.converged(math.expm1(0.02)) is enough


class TestVerdicts:
    @pytest.mark.parametrize(("truth", "said"), [(1.0, "same"), (1.2, "faster"), (0.8, "slower")])
    def test_say_what_is_so(self, truth: float, said: str) -> None:
        generator = np.random.default_rng(5)
        assert judged([noisy(generator, truth) for _ in range(20)], band(noisy(generator, 1.0))) == [said] * 20

    def test_a_restless_machine_does_not_make_everything_the_same(self) -> None:
        generator = np.random.default_rng(8)
        for truth, said in (1.0, "same"), (1.15, "unclear"), (1.5, "faster"):
            assert judged([noisy(generator, truth)], 0.22) == [said]

    def test_at_the_edge_of_the_band_nothing_is_clear(self) -> None:
        generator = np.random.default_rng(6)
        said = judged([noisy(generator, 1.05) for _ in range(200)], 0.05)
        assert said.count("unclear") >= 195

    def test_equal_things_are_hardly_ever_told_apart(self) -> None:
        generator = np.random.default_rng(7)
        for _ in range(50):
            said = judged([noisy(generator, 1.0) for _ in range(10)], band(noisy(generator, 1.0)))
            assert "faster" not in said
            assert "slower" not in said

    def test_what_is_sure_of_one_row_is_not_of_many(self) -> None:
        # 19 of 25 rounds lie outside of the band, which one row alone shows by chance in one run of a hundred.
        ratios = [1.06] * 19 + [1.04] * 6
        assert judged([ratios], 0.05) == ["faster"]
        assert judged([ratios] + [[1.049, 1.051] * 12] * 40, 0.05)[0] == "unclear"

    @pytest.mark.parametrize("rounds", [6, 12, *(pytest.param(each, marks=pytest.mark.slow) for each in (8, 20))])
    def test_few_rounds_are_no_surer_than_they_can_be(self, rounds: int) -> None:
        # At the edge itself every round is a fair coin: of 20 rows together one run in twenty may claim anything.
        generator = np.random.default_rng(rounds)
        wrong = 0
        for _ in range(100):
            said = judged([(1.05 * np.exp(0.02 * generator.standard_normal(rounds))).tolist() for _ in range(20)], 0.05)
            wrong += said != ["unclear"] * 20
        assert wrong <= 10

    def test_many_rows_that_are_clear_stay_clear(self) -> None:
        rows = 1000
        assert judged([[1.2] * ROUNDS] * rows, 0.05) == ["faster"] * rows

    def test_without_a_band_or_rounds_nothing_is_said(self) -> None:
        assert judged([[2.0] * ROUNDS], None) == ["unclear"]
        assert judged([[2.0] * (LEAST_ROUNDS - 1)], 0.01) == ["unclear"]


@pytest.mark.slow
class TestTwoRuns:
    """The new run's median over the old run's, by the same verdicts."""

    @pytest.mark.parametrize(("truth", "said"), [(1.0, "same"), (1.2, "faster"), (0.8, "slower")])
    def test_say_what_is_so(self, truth: float, said: str) -> None:
        generator = np.random.default_rng(9)
        found = [ratio(noisy(generator, 3 * truth), 999, noisy(generator, 3.0)) for _ in range(20)]
        assert verdicts(found, [0.07] * 20) == [said] * 20

    def test_the_interval_holds_the_truth_about_as_often_as_it_says(self) -> None:
        generator = np.random.default_rng(10)
        found = [ratio(noisy(generator, 1.3, 40), 999, noisy(generator, 2.6, 20)) for _ in range(300)]
        assert 0.92 <= np.mean([(each.low or 0) <= 0.5 <= (each.high or 0) for each in found]) <= 0.99

    @pytest.mark.parametrize(("old", "new", "noise"), [(6, 6, 1), (30, 30, 4), (60, 15, 4)])
    def test_at_the_edge_of_the_band_hardly_anything_is_claimed(self, old: int, new: int, noise: float) -> None:
        """Of 20 rows together in one diff of twenty, however much more the rounds of one run vary."""
        generator = np.random.default_rng(11)
        wrong = 0
        for _ in range(60):
            found = []
            for _ in range(20):
                before = np.exp(generator.normal(0, 0.02, old))
                after = 1.05 * np.exp(generator.normal(0, 0.02 * noise, new))
                found.append(ratio(after.tolist(), 199, before.tolist()))
            wrong += verdicts(found, [0.05] * 20) != ["unclear"] * 20
        assert wrong <= 6

    def test_rounds_that_all_lie_apart_are_clear(self) -> None:
        assert verdicts([ratio([2.0] * ROUNDS, 999, [1.0] * ROUNDS)], [0.05]) == ["faster"]

    @pytest.mark.parametrize(("old", "new"), [(LEAST_ROUNDS - 1, ROUNDS), (ROUNDS, LEAST_ROUNDS - 1)])
    def test_too_few_rounds_of_either_have_no_interval(self, old: int, new: int) -> None:
        found = ratio([2.0] * new, 999, [1.0] * old)
        assert (found.median, found.low, found.high) == (2.0, None, None)
        assert verdicts([found], [0.05]) == ["unclear"]


class TestWins:
    def test_say_what_is_so(self) -> None:
        generator = np.random.default_rng(1)
        truths = (2.0, 1.15, 1.05, 1.0, 0.95, 0.5)
        said = wins([noisy(generator, truth) for truth in truths], [WIDEST_SAME] * len(truths))
        assert said == [FASTER] * 2 + [NOT_FASTER] * 4

    def test_nobody_wins_by_less_than_copies_of_the_baseline_differ(self) -> None:
        generator = np.random.default_rng(1)
        ratios = [noisy(generator, truth) for truth in (2.0, 1.3, 1.0)]
        assert wins(ratios, [0.5] * 3) == [FASTER, UNCLEAR, NOT_FASTER]
        assert wins(ratios, [None] * 3) == [UNCLEAR, UNCLEAR, NOT_FASTER]

    def test_few_rounds_tell_who_loses_tenfold_in_each(self) -> None:
        few = [[0.09] * 3, [0.09, 0.11, 0.09], [2.0] * 5, []]
        assert wins(few, [WIDEST_SAME] * 4) == [NOT_FASTER, UNCLEAR, UNCLEAR, UNCLEAR]

    def test_rows_that_had_but_a_look_cost_the_others_nothing(self) -> None:
        """Seven rounds make one row clear, which they would not beside a hundred that were tested."""
        rows = [[2.0] * 7, *[[2.0] * 3] * 100]
        assert wins(rows, [WIDEST_SAME] * 101)[0] == FASTER
        rows = [[2.0] * 7, *[[1.0, 1.2] * 4] * 100]
        assert wins(rows, [WIDEST_SAME] * 101)[0] == UNCLEAR

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("rows", "edge", "false"),
        [(rows, WIDEST_SAME, {claim}) for rows in (1, 4) for claim in (FASTER, NOT_FASTER)]
        + [(1, 0.2, {FASTER, NOT_FASTER})],
    )
    def test_one_may_stop_at_the_first_clear_answer(self, rows: int, edge: float, false: set[str]) -> None:
        """At the edge every round is a fair coin: whoever looks after each is wrong in one run of twenty at most.

        Just above a single edge only `NOT_FASTER` is wrong, and just below it only `FASTER`.
        """
        generator = np.random.default_rng(rows)
        ratios = (1 + edge) * np.exp(NOISE * generator.standard_normal((200, rows, 40)))
        wrong = sum(
            any(false & {*wins(run[:, :looked].tolist(), [edge] * rows)} for looked in range(LEAST_ROUNDS, 41))
            for run in ratios
        )
        assert wrong <= 10

    @pytest.mark.parametrize(("rows", "needed"), [(1, 6), (8, 9), (100, 13)])
    def test_few_rounds_that_agree_are_enough(self, rows: int, needed: int) -> None:
        for truth, said in (2.0, FASTER), (1.0, NOT_FASTER):
            assert wins([[truth] * needed] * rows, [WIDEST_SAME] * rows) == [said] * rows
            assert wins([[truth] * (needed - 1)] * rows, [WIDEST_SAME] * rows) == [UNCLEAR] * rows

    def test_a_clear_answer_stays(self) -> None:
        assert wins([[2.0] * 12 + [1.0] * 12], [WIDEST_SAME]) == [FASTER]

    def test_the_edge_is_how_far_the_controls_reach_on_either_side(self) -> None:
        assert edge([(0.99, 1.01), (0.98, 1.02)]) == WIDEST_SAME
        assert edge([(0.99, 1.01), (0.8, 1.02)]) == pytest.approx(0.25)
        assert edge([(0.99, 1.3), (0.98, 1.02)]) == pytest.approx(0.3)
        assert edge([(0.99, 1.01), (None, None)]) is None
        assert edge([]) is None


class TestLeads:
    def test_say_what_is_so(self) -> None:
        generator = np.random.default_rng(1)
        quiet = (1 + 0.001 * generator.standard_normal(ROUNDS)).tolist()
        assert leads([noisy(generator, 2.0), quiet, noisy(generator, 1.0), []]) == [FASTER, SAME, UNCLEAR, UNCLEAR]

    def test_one_may_stop_at_the_first_clear_answer(self) -> None:
        """At the edge every round is a fair coin, and no answer is right."""
        runs = (1 + NARROWEST_BAND) * np.exp(NOISE * np.random.default_rng(7).standard_normal((100, 40)))
        assert sum(any(leads([run[:n].tolist()]) != [UNCLEAR] for n in range(1, 41)) for run in runs) <= 5

    @pytest.mark.parametrize(("rivals", "needed"), [(1, 7), (11, 14)])
    def test_few_rounds_that_agree_tell_whichever_is_the_quickest(self, rivals: int, needed: int) -> None:
        assert leads([[1.5] * needed] * rivals) == [FASTER] * rivals
        assert leads([[1.5] * (needed - 1)] * rivals) == [UNCLEAR] * rivals

    def test_who_takes_tenfold_in_each_of_a_few_rounds_is_behind_and_no_rival(self) -> None:
        assert leads([[11.0] * 3, [11.0, 9.0, 11.0], [11.0] * 2]) == [FASTER, UNCLEAR, UNCLEAR]
        assert leads([[1.5] * 7, *[[11.0] * 3] * 10]) == [FASTER] * 11
