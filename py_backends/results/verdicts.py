"""Verdicts: is one kernel faster than another, or are they the same within this run's noise?

Each round gives a ratio of two samples that were taken close to each other. All computations use the logarithms of
these ratios. So twice as fast and half as fast are equally far from equal.

Two runs are compared by the same ratios: is the new run's median above the old run's?

The *band* shows how far apart two equal rows may lie. The ratios of the baseline and a copy of itself set it, in the
same run. For a verdict, the median's interval must lie on one side of an edge of the band. Verdicts hold at 95% for
all rows of the run together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from py_backends.results.statistics import anytime_p_value, holm

LEAST_ROUNDS = 6
"""With fewer samples, even the smallest and the largest do not bound a median at 95%."""
NARROWEST_BAND = 0.01
"""A smaller difference does not matter: the address of the code in memory can cause as much."""
WIDEST_SAME = 0.10
"""Rows that may differ by more are not called the same, even if a noisy machine has a wider band."""
SAME, FASTER, SLOWER, UNCLEAR = "same", "faster", "slower", "unclear"
NOT_FASTER = "not faster"
LOOKS = 3
"""Rounds that give a first impression of a row."""
_FAR = 10.0
"""A row that takes this many times as long in every round does not win, even with few rounds."""
_LEVEL = 0.05
RESAMPLES_TO_STOP = 999
"""Enough to know the width of an interval."""
RESAMPLES = 9999
"""For the interval that is reported."""
_DEVIATIONS_FOR_95 = 1.96
_MEDIAN_OF_DEVIATIONS = 0.6745
"""The median distance of normal samples from their centre, in standard deviations."""


@dataclass(frozen=True)
class Ratio:
    """The median of a row's ratios, with its 95% interval. Above 1 is faster than the baseline.

    For two runs it is the new run's median over the old run's. Above 1 is faster than before.

    low, high: None if a run has fewer than `LEAST_ROUNDS` rounds.
    logarithms: of the ratios, one for each round.
    before: the same for the old run; empty if only one run is judged.
    """

    median: float
    low: float | None
    high: float | None
    logarithms: NDArray[np.float64]
    before: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    @property
    def rounds(self) -> int:
        """The number of ratios."""
        return len(self.logarithms)

    def converged(self, band: float) -> bool:
        """Whether the interval is narrow enough for a verdict: half its width is less than half the band."""
        if self.low is None or self.high is None:
            return False
        return math.log(self.high / self.low) / 2 < math.log1p(band) / 2


def ratio(ratios: Sequence[float], resamples: int = RESAMPLES, before: Sequence[float] = ()) -> Ratio:
    """Summarise ratios by the percentile bootstrap over rounds.

    The source is Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13. The rounds of two runs are
    drawn independently (chapter 8). The resampling is seeded, so the same ratios always give the same interval.

    ratios: one for each round.
    before: the ratios of an old run to compare with.
    """
    runs = [np.log(each) for each in (ratios, before) if len(each)]
    median = math.exp(float(_distance(*runs)))
    if min(map(len, runs)) < LEAST_ROUNDS:
        return Ratio(median, None, None, *runs)
    # Imported here: the import takes most of a second, which `--help` does not need.
    from scipy.stats import bootstrap

    found = bootstrap(runs, _distance, n_resamples=resamples, method="percentile", rng=np.random.default_rng(0))
    low, high = (math.exp(float(edge)) for edge in found.confidence_interval)
    return Ratio(median, low, high, *runs)


def _distance(new: NDArray[np.float64], *old: NDArray[np.float64], axis: int = -1) -> Any:
    """The difference of the medians of two runs; for one run, its median."""
    return np.median(new, axis) - sum(np.median(each, axis) for each in old)


def band(ratios: Sequence[float]) -> float | None:
    """The band that a control's ratios set: about 95% of them lie between 1 / (1 + band) and 1 + band.

    It is computed from their median distance to 1, as for a normal distribution: a few outliers do not move a median.
    None with too few rounds.
    """
    if len(ratios) < LEAST_ROUNDS:
        return None
    distance = float(np.median(np.abs(np.log(ratios))))
    return max(NARROWEST_BAND, math.expm1(_DEVIATIONS_FOR_95 / _MEDIAN_OF_DEVIATIONS * distance))


def verdicts(ratios: Sequence[Ratio], bands: Sequence[float | None]) -> list[str]:
    """A verdict for each ratio by its band. All verdicts hold together at 95% (Holm's correction)."""
    claims = [_claim(each, band) for each, band in zip(ratios, bands, strict=True)]
    adjusted = holm([p_value for _, p_value in claims])
    return [claim if p_value <= _LEVEL else UNCLEAR for (claim, _), p_value in zip(claims, adjusted, strict=True)]


def wins(ratios: Sequence[Sequence[float]], edges: Sequence[float | None]) -> list[str]:
    """Whether each row is `FASTER` by more than its edge, `NOT_FASTER` by `WIDEST_SAME`, or `UNCLEAR`.

    All answers hold together at 95%, by Holm's correction. They hold after every round too, so rounds may end as soon
    as an answer is clear: see `anytime_p_value`. Many rows are equal, at the peak of a machine or the bandwidth of its
    memory. They must not win by 1% in one run and lose by 1% in the next.

    ratios: for each row, one for each round, in their order.
    edges: see `edge`; None if no row can win.
    """
    claims = {
        at: _win(np.log(each), edge)
        for at, (each, edge) in enumerate(zip(ratios, edges, strict=True))
        if len(each) >= LEAST_ROUNDS
    }
    said = _together(claims)
    far = [len(each) > 0 and max(each) * _FAR < 1 for each in ratios]
    return [NOT_FASTER if is_far else said.get(at, UNCLEAR) for at, is_far in enumerate(far)]


def leads(ratios: Sequence[Sequence[float]]) -> list[str]:
    """Whether the quickest row is `FASTER` than each other by more than `NARROWEST_BAND`, the `SAME`, or `UNCLEAR`.

    All answers hold together at 95%. They hold after every round too, so a row may drop out as soon as its answer is
    clear: see `anytime_p_value`. They hold whichever row seems the quickest: each of n rows might have, so each p-value
    counts n times, before Holm's correction. Rows that take `_FAR` times as long in each of `LOOKS` or more rounds are
    no rivals, and count nowhere.

    ratios: for each other row, the speed-ups of the quickest over it, one for each round, in their order.
    """
    far = [len(each) >= LOOKS and min(each) > _FAR for each in ratios]
    rivals = [at for at, is_far in enumerate(far) if not is_far]
    said = _together({at: _lead(np.log(ratios[at])) for at in rivals}, times=1 + len(rivals))
    return [said.get(at, FASTER) for at in range(len(ratios))]


def _together(claims: Mapping[int, tuple[str, float]], times: int = 1) -> dict[int, str]:
    """The claims that hold together at 95%, with `UNCLEAR` for the others. Each p-value counts so many times."""
    adjusted = holm([min(1.0, times * p_value) for _, p_value in claims.values()])
    found = zip(claims.items(), adjusted, strict=True)
    return {at: claim if p_value <= _LEVEL else UNCLEAR for (at, (claim, _)), p_value in found}


def edge(controls: Sequence[tuple[float | None, float | None]]) -> float | None:
    """The margin of a win: `WIDEST_SAME`, or more if copies of the baseline differ by more. None with too few rounds.

    controls: for each copy, the interval of its median ratio.
    """
    reached = [abs(math.log(end)) for interval in controls for end in interval if end is not None]
    if not reached or len(reached) < 2 * len(controls):
        return None
    return max(WIDEST_SAME, math.expm1(max(reached)))


def _win(logarithms: NDArray[np.float64], edge: float | None) -> tuple[str, float]:
    """The side of its edge on which the median lies, and its p-value.

    One edge bounds both claims, so one of the two is true. Between two edges both are false, and the value doubles.
    """
    held = {NOT_FASTER: logarithms < math.log1p(WIDEST_SAME)}
    if edge is not None:
        held[FASTER] = logarithms > math.log1p(edge)
    p_values = {claim: anytime_p_value(rounds) for claim, rounds in held.items()}
    claim = min(p_values, key=lambda each: p_values[each])
    false_claims = 1 if edge is None or edge <= WIDEST_SAME else 2
    return claim, min(1.0, false_claims * p_values[claim])


def _lead(logarithms: NDArray[np.float64]) -> tuple[str, float]:
    """Whether the median lies above the narrowest band or within it, and the p-value of that."""
    edge = math.log1p(NARROWEST_BAND)
    not_above, not_below = anytime_p_value(logarithms < edge), anytime_p_value(logarithms > -edge)
    p_values = {FASTER: anytime_p_value(logarithms > edge), SAME: max(not_above, not_below)}
    claim = min(p_values, key=lambda each: p_values[each])
    return claim, p_values[claim]


def _claim(ratio: Ratio, band: float | None) -> tuple[str, float]:
    """The claim of a ratio's interval, and its two-sided p-value, since any of the claims may be false."""
    if band is None or ratio.low is None or ratio.high is None:
        return UNCLEAR, 1.0
    low, high = math.log(ratio.low), math.log(ratio.high)
    edge, same = math.log1p(band), math.log1p(min(band, WIDEST_SAME))
    if low > edge:
        claim, p_value = FASTER, _p_value(ratio, 1, edge)
    elif high < -edge:
        claim, p_value = SLOWER, _p_value(ratio, -1, edge)
    elif -same < low and high < same:
        claim, p_value = SAME, max(_p_value(ratio, sign, -same) for sign in (1, -1))
    else:
        return UNCLEAR, 1.0
    return claim, min(1.0, 2 * p_value)


def _p_value(ratio: Ratio, sign: int, edge: float) -> float:
    """The one-sided p-value of the claim that the logarithm of the ratio, times `sign`, exceeds `edge`.

    For one run it is that of the sign test (Conover, Practical Nonparametric Statistics, 3rd edition, section 3.4).
    Unlike the bootstrap, this test is exact for few rounds too.

    For two runs it is the larger p-value of two tests. The test of Mann and Whitney (Conover, section 5.1) is exact for
    few rounds, but finds too much if the rounds of one run vary more. That of E. Brunner and U. Munzel does not, but
    needs more than ten rounds, and some that overlap. It is from The nonparametric Behrens-Fisher problem, Biometrical
    Journal 42 (2000), 17-25.
    """
    from scipy.stats import binom, brunnermunzel, mannwhitneyu

    new, old = sign * ratio.logarithms - edge, sign * ratio.before
    if not len(old):
        return float(binom.cdf(np.sum(new <= 0), ratio.rounds, 0.5))
    by_ranks = float(mannwhitneyu(new, old, alternative="greater").pvalue)
    if min(new) > max(old):
        return by_ranks
    return max(by_ranks, float(brunnermunzel(old, new, alternative="less").pvalue))
