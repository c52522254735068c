"""Medians with intervals that hold for any distribution of the times."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from py_backends.results.report import Duration


@dataclass(frozen=True)
class Median:
    """A median with its 95% interval. The bounds are None with too few samples."""

    value: float
    low: float | None
    high: float | None


def median(samples: Sequence[float]) -> Median:
    """The median with its 95% interval between two order statistics.

    The interval inverts the sign test (Conover, Practical Nonparametric Statistics, 3rd edition, section 3.2). It needs
    at least 6 samples, and holds for any distribution.
    """
    ordered, rank = sorted(samples), _rank(len(samples))
    low, high = (ordered[rank - 1], ordered[-rank]) if rank else (None, None)
    return Median(statistics.median(ordered), low, high)


@cache
def _rank(count: int) -> int:
    """How many of so many samples, from either end, bound their median at 95%; 0 where not even the first does.

    SciPy's `quantile_test` finds the same. Schedules look at hundreds of rows after every round, for which it is slow.
    """
    # Imported here: the import takes most of a second, which `--help` does not need.
    from scipy.stats import binom

    return int(binom.ppf(0.025, count, 0.5))


def duration(samples: Sequence[float]) -> Duration:
    """Summarise the samples of a phase, in seconds."""
    middle = median(samples)
    return Duration(middle.value, middle.low, middle.high, min(samples), len(samples))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values, in the given order. At 95%, no finding with an adjusted value below 0.05 is false.

    The method is that of S. Holm (A simple sequentially rejective multiple test procedure, Scandinavian Journal of
    Statistics 6 (1979), 65-70). The smallest of n values is multiplied by n, the next by n - 1, and so on. None becomes
    smaller than the one before it, or larger than 1. The values may depend on one another.
    """
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = largest
    return adjusted


def anytime_p_value(heads: NDArray[np.bool_]) -> float:
    """The p-value of the claim that a coin shows more heads than tails, when one looks after every toss.

    An ordinary sign test holds for a number of tosses that was fixed before. With a look after every toss, and an end
    at the first clear one, it finds far too much. This value holds whenever the tosses end. After each toss, m is the
    likelihood of all tosses with a biased coin over that with a fair one, as a mean over the biases. Without a bias
    towards heads m is a supermartingale that begins at 1. It ever reaches 1 / p with a probability of at most p, so the
    value is the least of 1 / m (J. Ville, Étude critique de la notion de collectif (1939); H. Robbins, Statistical
    methods related to the law of the iterated logarithm, Annals of Mathematical Statistics 41 (1970), 1397-1409). The
    biases have Jeffreys' prior above 1/2. Where all tosses agree, as most do, it needs a toss less than a uniform one.

    heads: whether each toss showed heads, in the order of the tosses.
    """
    # Imported here: the import takes most of a second, which `--help` does not need.
    from scipy.special import betainc, betaln

    tosses = np.arange(1, len(heads) + 1)
    more, less = np.cumsum(heads) + 0.5, np.cumsum(~heads) + 0.5
    with np.errstate(divide="ignore"):  # of many tails the integral is too small for a number
        above_half = np.log(betainc(less, more, 0.5))
    means = (tosses + 1) * math.log(2) + betaln(more, less) - betaln(0.5, 0.5) + above_half
    return math.exp(-float(np.max(means, initial=0.0)))
