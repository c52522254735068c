"""Verdicts: is one kernel faster than another, or are they the same?

Each round gives a ratio of two samples that were taken close to each other. All computations use the logarithms of
these ratios. So twice as fast and half as fast are equally far from equal. A verdict is about their median:

    faster, slower  it lies beyond 1% on this side
    same            else, if its 95% interval lies within 10% on both sides
    unclear         else

All claims of `faster` and `slower` hold together at 95%, and whenever the rounds end: see `anytime_p_value`. They hold
in each process that computed a row: equal processes may differ by a tenth for as long as they live. Two runs are
compared by the same words: is the new run's median above the old run's?
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from py_backends.results.statistics import anytime_p_value, holm, median

LEAST_ROUNDS = 6
"""With fewer samples, even the smallest and the largest do not bound a median at 95%."""
MARGIN = 0.01
"""A smaller difference does not matter: the address of the code in memory can cause as much."""
WIDEST_SAME = 0.10
"""Rows that may differ by more are not called the same."""
SAME, FASTER, SLOWER, UNCLEAR = "same", "faster", "slower", "unclear"
LOOKS = 3
"""Rounds that give a first impression of a row."""
_FAR = {LOOKS: 10.0, LEAST_ROUNDS: 1.5}
"""By the number of rounds: no neighbour and no placement makes a row so many times as fast or slow in each of them."""
_LEVEL = 0.05
NEW_PROCESSES = (8, 24)
"""The rounds that begin with new processes. What a process has for life is drawn anew then: where its code and its
threads lie, and what its runtime has chosen."""


@dataclass(frozen=True)
class Ratio:
    """The median of a row's ratios, with its 95% interval. Above 1 is faster than the baseline.

    For two runs it is the new run's median over the old run's. Above 1 is faster than before.

    low, high: None if a run has fewer than `LEAST_ROUNDS` rounds.
    logarithms: of the ratios, one for each round, in their order.
    numbers: of these rounds.
    before: the logarithms of the old run; empty if only one run is judged.
    """

    median: float
    low: float | None
    high: float | None
    logarithms: NDArray[np.float64]
    numbers: Sequence[int]
    before: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    @property
    def rounds(self) -> int:
        """The number of ratios."""
        return len(self.logarithms)

    @property
    def is_far(self) -> bool:
        """Whether every round shows far more of the speed, or far less: the more rounds, the less is far."""
        if len(self.before) or self.rounds < LOOKS:
            return False
        far = math.log(min(factor for rounds, factor in _FAR.items() if rounds <= self.rounds))
        return bool(min(self.logarithms) > far or max(self.logarithms) < -far)

    @property
    def of_each_process(self) -> list[float]:
        """The median of the logarithms of each process's rounds, if these are a few."""
        parts = np.split(self.logarithms, np.searchsorted(self.numbers, NEW_PROCESSES))
        return [float(np.median(part)) for part in parts if len(part) >= LOOKS]

    def lies_within(self, part: float) -> bool:
        """Whether its interval lies from 1 / (1 + part) to 1 + part."""
        if self.low is None or self.high is None:
            return False
        return max(1 / self.low, self.high) < 1 + part


def ratio(ratios: Sequence[float] | Mapping[int, float], before: Sequence[float] = ()) -> Ratio:
    """Summarise ratios by their median and its 95% interval (`statistics.median`).

    The interval of two runs' difference is made of both intervals, each deviation squared and added (G. Y. Zou and A.
    Donner, Construction of confidence limits about effect measures: a general approach, Statistics in Medicine 27
    (2008), 1693-1702, section 2).

    ratios: one for each round, by its number or in their order.
    before: the ratios of an old run to compare with.
    """
    by_number = ratios if isinstance(ratios, Mapping) else dict(enumerate(ratios))
    numbers, new = list(by_number), np.log(list(by_number.values()))
    found = median(new.tolist())
    if not len(before):
        return Ratio(math.exp(found.value), _exp(found.low), _exp(found.high), new, numbers)
    old = np.log(before)
    earlier = median(old.tolist())
    change = found.value - earlier.value
    if found.low is None or found.high is None or earlier.low is None or earlier.high is None:
        return Ratio(math.exp(change), None, None, new, numbers, old)
    below = math.hypot(found.value - found.low, earlier.high - earlier.value)
    above = math.hypot(found.high - found.value, earlier.value - earlier.low)
    return Ratio(math.exp(change), math.exp(change - below), math.exp(change + above), new, numbers, old)


def _exp(edge: float | None) -> float | None:
    return None if edge is None else math.exp(edge)


def verdicts(ratios: Sequence[Ratio], margins: Sequence[float] = (), times: float = 1) -> list[str]:
    """A verdict for each ratio. All claims of `FASTER` and `SLOWER` hold together at 95% (Holm's correction).

    Rows that are far off in each of a few rounds need no test, and count nowhere.

    margins: how far apart equal rows may lie, one for each ratio; `MARGIN` without any.
    times: how often each p-value counts, where the rows were chosen by what they showed.
    """
    tested = [at for at, each in enumerate(ratios) if each.low is not None and not each.is_far]
    claims = [_claim(ratios[at], math.log1p(margins[at] if margins else MARGIN)) for at in tested]
    adjusted = holm([min(1.0, times * p_value) for _, p_value in claims])
    said = {at: claim for at, (claim, _), p_value in zip(tested, claims, adjusted, strict=True) if p_value <= _LEVEL}
    return [said.get(at) or _untested(each) for at, each in enumerate(ratios)]


def _untested(ratio: Ratio) -> str:
    if ratio.is_far:
        return FASTER if ratio.median > 1 else SLOWER
    return SAME if ratio.lies_within(WIDEST_SAME) else UNCLEAR


def is_decided(ratio: Ratio, verdict: str) -> bool:
    """Whether more rounds can hardly change its verdict. What may be the same may turn out to be faster by 3%.

    A claim of one process need not be that of another one, unless the row is far off.
    """
    claimed = verdict in {FASTER, SLOWER}
    return (claimed and (ratio.is_far or len(ratio.of_each_process) > 1)) or ratio.lies_within(2 * MARGIN)


def leads(ratios: Sequence[Ratio]) -> list[str]:
    """Whether the quickest row is `FASTER` than each other, the `SAME`, or that is `UNCLEAR`, by `verdicts`.

    It holds whichever row seems the quickest: each of n rows might have, so each p-value counts n times, and once where
    a verdict counts it for both sides.

    ratios: for each other row, the speed-ups of the quickest over it.
    """
    rivals = sum(not each.is_far for each in ratios)
    said = verdicts(ratios, times=(1 + rivals) / 2)
    return [UNCLEAR if each == SLOWER else each for each in said]


def _claim(ratio: Ratio, margin: float) -> tuple[str, float]:
    """The side of 1 on which the median lies, and the p-value of its lying beyond the margin.

    It is doubled: of equal rows the claim of either side would be false.
    """
    claim, sign = (FASTER, 1) if ratio.median > 1 else (SLOWER, -1)
    return claim, min(1.0, 2 * _p_value(ratio, sign, margin))


def _p_value(ratio: Ratio, sign: int, margin: float) -> float:
    """The one-sided p-value of the claim that the logarithm of the ratio, times `sign`, exceeds `margin`.

    For one run, rounds are counted that lie beyond, after every round.

    For two runs it is the larger p-value of two tests. That of Mann and Whitney is exact for few rounds (Conover,
    Practical Nonparametric Statistics, 3rd edition, section 5.1), but finds too much if one run varies more. That of E.
    Brunner and U. Munzel does not, but needs more than ten rounds, and some that overlap. It is from The nonparametric
    Behrens-Fisher problem, Biometrical Journal 42 (2000), 17-25.
    """
    new, old = sign * ratio.logarithms - margin, sign * ratio.before
    if not len(old):
        in_each = all(sign * each > margin for each in ratio.of_each_process)
        return anytime_p_value(new > 0) if in_each else 1.0
    from scipy.stats import brunnermunzel, mannwhitneyu

    by_ranks = float(mannwhitneyu(new, old, alternative="greater").pvalue)
    if max(new) < min(old):
        return 1.0
    if min(new) > max(old):
        return by_ranks
    return max(by_ranks, float(brunnermunzel(old, new, alternative="less").pvalue))
