"""Verdicts: is one kernel faster than another, or are they the same within this run's noise?

A run tells it from ratios, one a round, of two samples that were taken close to each other. All is computed with
their logarithms, so that twice as fast and half as fast lie equally far from the same.

Two runs are compared by the same ratios: is the median of the new run's above that of the old run's?

The *band* is how far apart two equal things may seem: what the rounds of the baseline against a copy of itself
say, in this very run. A verdict needs the median's interval to lie on one side of an edge of the band, at 95%
for all rows of the run together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from py_backends.harness.statistics import holm

LEAST_ROUNDS = 6
"""With fewer samples not even the smallest and the largest bound a median at 95%."""
NARROWEST_BAND = 0.01
"""A smaller difference does not matter: the place of code in memory makes as large a one."""
WIDEST_SAME = 0.10
"""What may differ by more is not called the same, however wide a noisy machine makes the band."""
SAME, FASTER, SLOWER, UNCLEAR = "same", "faster", "slower", "unclear"
NOT_FASTER = "not faster"
_FAR = 10.0
"""A row that takes this many times as long in every round does not win, in however few rounds."""
_LEVEL = 0.05
RESAMPLES_TO_STOP = 999
"""Enough to see how wide an interval is."""
RESAMPLES = 9999
"""For the interval that is reported."""
_DEVIATIONS_FOR_95 = 1.96
_MEDIAN_OF_DEVIATIONS = 0.6745
"""The median distance of normal samples from their centre, in standard deviations."""


@dataclass(frozen=True)
class Ratio:
    """The median of a row's ratios, with its 95% interval; above 1 is faster than the baseline.

    Of two runs: how many times the median of the old run that of the new run is; above 1 is faster than before.

    low, high: None where a run has fewer than `LEAST_ROUNDS` rounds.
    logarithms: of the ratios, one a round.
    before: the same of the old run; empty where one run alone is judged.
    """

    median: float
    low: float | None
    high: float | None
    logarithms: NDArray[np.float64]
    before: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    @property
    def rounds(self) -> int:
        """How many ratios there are."""
        return len(self.logarithms)

    def converged(self, band: float) -> bool:
        """Whether the interval is narrow enough for a verdict: half its width is under half the band."""
        if self.low is None or self.high is None:
            return False
        return math.log(self.high / self.low) / 2 < math.log1p(band) / 2


def ratio(ratios: Sequence[float], resamples: int = RESAMPLES, before: Sequence[float] = ()) -> Ratio:
    """Summarise ratios, one a round, by the percentile bootstrap over rounds.

    Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13; the rounds of two runs are drawn
    independently of one another (chapter 8). The resampling is seeded: the same ratios always give the same interval.

    before: the ratios of an old run, with which those of the new one are compared.
    """
    runs = [np.log(each) for each in (ratios, before) if len(each)]
    median = math.exp(float(_distance(*runs)))
    if min(map(len, runs)) < LEAST_ROUNDS:
        return Ratio(median, None, None, *runs)
    # Imported here: it takes most of a second, which `--help` need not pay.
    from scipy.stats import bootstrap

    found = bootstrap(runs, _distance, n_resamples=resamples, method="percentile", rng=np.random.default_rng(0))
    low, high = (math.exp(float(edge)) for edge in found.confidence_interval)
    return Ratio(median, low, high, *runs)


def _distance(new: NDArray[np.float64], *old: NDArray[np.float64], axis: int = -1) -> Any:
    """Of medians; of one run alone from 0."""
    return np.median(new, axis) - sum(np.median(each, axis) for each in old)


def band(ratios: Sequence[float]) -> float | None:
    """The band that a control's ratios set: about 95% of its rounds lie between 1 / (1 + band) and 1 + band.

    By the median distance from 1, which few outliers do not move, as of a normal distribution. None with too few.
    """
    if len(ratios) < LEAST_ROUNDS:
        return None
    distance = float(np.median(np.abs(np.log(ratios))))
    return max(NARROWEST_BAND, math.expm1(_DEVIATIONS_FOR_95 / _MEDIAN_OF_DEVIATIONS * distance))


def verdicts(ratios: Sequence[Ratio], bands: Sequence[float | None]) -> list[str]:
    """A verdict for each ratio by its band, all of them right together at 95% (Holm's correction)."""
    claims = [_claim(each, band) for each, band in zip(ratios, bands, strict=True)]
    adjusted = holm([p_value for _, p_value in claims])
    return [claim if p_value <= _LEVEL else UNCLEAR for (claim, _), p_value in zip(claims, adjusted, strict=True)]


def wins(ratios: Sequence[Sequence[float]], edges: Sequence[float | None]) -> list[str]:
    """Whether each is `FASTER` by more than its edge, `NOT_FASTER` by `WIDEST_SAME`, or `UNCLEAR`, all right at 95%.

    By the sign test, exact for any number of rounds, with Holm's correction. Equals meet again and again, at the peak
    of a machine or the bandwidth of its memory: they must not win by a hundredth in one run and lose by it in the next.

    ratios: of each, one a round.
    edges: see `edge`; None where nothing can be told to win.
    """
    claims = [_win(np.log(each), edge) for each, edge in zip(ratios, edges, strict=True)]
    tested = [at for at, each in enumerate(ratios) if len(each) >= LEAST_ROUNDS]
    adjusted = dict(zip(tested, holm([claims[at][1] for at in tested]), strict=True))
    far = [len(each) > 0 and max(each) * _FAR < 1 for each in ratios]
    return [
        NOT_FASTER if far[at] else claim if adjusted.get(at, 1.0) <= _LEVEL else UNCLEAR
        for at, (claim, _) in enumerate(claims)
    ]


def edge(controls: Sequence[tuple[float | None, float | None]]) -> float | None:
    """The margin of a win: `WIDEST_SAME`, or more if copies of the baseline differ by more.

    controls: the intervals of their median ratios. None with too few rounds for these.
    """
    reached = [abs(math.log(end)) for interval in controls for end in interval if end is not None]
    if not reached or len(reached) < 2 * len(controls):
        return None
    return max(WIDEST_SAME, math.expm1(max(reached)))


def _win(logarithms: NDArray[np.float64], edge: float | None) -> tuple[str, float]:
    """On which side of its edge the median lies, and the p-value of that by the sign test, of either side."""
    from scipy.stats import binom

    limits = {NOT_FASTER: np.sum(logarithms >= math.log1p(WIDEST_SAME))}
    if edge is not None:
        limits[FASTER] = np.sum(logarithms <= math.log1p(edge))
    claim = min(limits, key=lambda each: limits[each])
    return claim, min(1.0, 2 * float(binom.cdf(limits[claim], len(logarithms), 0.5)))


def _claim(ratio: Ratio, band: float | None) -> tuple[str, float]:
    """What a ratio's interval says, and its p-value: of either side, since any of the claims may be false."""
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
    """Of the claim that the logarithm of the ratio, times `sign`, is above `edge`; of one side.

    Of one run by the sign test, exact for any number of rounds, as the bootstrap is not for few of them (Conover,
    Practical Nonparametric Statistics, 3rd edition, section 3.4). Of two runs by the larger p-value of two tests: that
    of Mann and Whitney (section 5.1) is exact for few rounds, but finds too much where those of one run vary more; that
    of E. Brunner and U. Munzel (The nonparametric Behrens-Fisher problem, Biometrical Journal 42 (2000), 17-25) does
    not, but needs more than ten rounds, and some that overlap.
    """
    from scipy.stats import binom, brunnermunzel, mannwhitneyu

    new, old = sign * ratio.logarithms - edge, sign * ratio.before
    if not len(old):
        return float(binom.cdf(np.sum(new <= 0), ratio.rounds, 0.5))
    by_ranks = float(mannwhitneyu(new, old, alternative="greater").pvalue)
    if min(new) > max(old):
        return by_ranks
    return max(by_ranks, float(brunnermunzel(old, new, alternative="less").pvalue))
