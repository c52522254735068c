"""attention: c = softmax(q k^T / sqrt(d)) v, the soft attention of one head of a transformer.

m queries of width d meet n keys and their values: q and c are m x d, k and v n x d, all stored by rows. The softmax is
over the keys: e^s[j] / sum e^s. (Vaswani and others, Attention is all you need, NeurIPS 2017, section 3.2.1.) There is
at least one key, since a mean of nothing is undefined. A query all of whose scores are -infinity has no mean either.
Its row is NaN.

What is right: u is the unit roundoff of the sums, s a query's scores, P their softmax. A computed score less the
largest has an absolute error of at most

    ds = (d + 3) u |q||k|^T / sqrt(d) + 2u |s| + 2u |s - max s|,

and an exponential 4u more. So a weight has a relative error of at most E = e^(ds + 4u) - 1, their sum one of at most
Ebar = sum P E. Rounding errors of both sums add up to at most n u each, and most probably to 6 sqrt(n) u:

    |error| <= (P E |v| + Ebar P |v|) / (1 - Ebar) + (2 min(n, 6 sqrt(n)) + 8) u P |v|

and never to more than 2 max |v|, since results are means. (After Blanchard, Higham and Higham, Accurately computing the
log-sum-exp and softmax functions, IMA J. Numer. Anal. 41, 2021, section 4, and Higham and Mary, A new approach to
probabilistic rounding error analysis, SIAM J. Sci. Comput. 41, 2019.) What products and weights lose to underflow is
added. Where sums may overflow, infinity and NaN pass.

The 16-bit formats are summed in float32, where matrix units cost up to twice the roundoff: see matmul. These need
weights of the inputs' format, so e^(s - max s) may be rounded to it once.

Rounding hides a missing key among many. So two kinds of queries have a narrower bound, by which they judge structure:

- A query of zeros, whose result is the plain mean, where values are whole numbers and sum up exactly. Weights may be
  divided by their sum before they are multiplied, so that products and sums round: (min(n, 6 sqrt(n)) + 3) u P |v|.
- A query with one score so far above the others that their weights are lost: its value, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from py_backends.contract import Array, Ladder, Problem, Reference, Rung

_PAIRS = 2**20
"""Of a query and a key, of which the reference has the scores at a time."""
_EVERY = 8
"""One of so many queries of a comparison is zero."""
_WEIGHT_DIGITS = {"float16": 11, "bfloat16": 8}
"""The digits that a weight keeps where it is rounded to the inputs' format."""

STEPS_ON_CPU = Ladder(
    rungs=(
        Rung("cpp", "lecture", "one pass over the keys"),
        Rung("openmp", "lecture", "threads"),
        Rung("openmp", "blocks_of_keys", "blocks of keys, vectors"),
        Rung("openmp", "vectors_of_powers", "vectors of exponentials"),
        Rung("openmp", "tuned", "tiles in registers"),
        Rung("avx", "tuned", "intrinsics"),
    ),
    sizes=(1024, 64, 1024),
    name="CPU",
)

STEPS_ON_GPU = Ladder(
    rungs=(
        Rung("cuda", "lecture", "a query a thread"),
        Rung("cuda", "shared_tiles", "tiles of keys and values in shared memory"),
        Rung("cuda", "tuned", "scores in registers, tensor cores"),
    ),
    sizes=(8192, 64, 8192),
    name="GPU",
)


class Attention(Problem):
    name = "attention"
    signature = "(m,d),(n,d),(n,d)->(m,d)"
    inputs = ("q", "k", "v")
    nonzero_sizes = ("n",)
    rule = "componentwise"
    rate = "gflops"
    dtypes = ("float32", "float64", "float16", "bfloat16")
    results = Problem.sums
    in_place = False
    default_sizes = (521, 67, 509)  # primes, all different: edges and swapped sizes show
    steps = (STEPS_ON_CPU, STEPS_ON_GPU)
    # One key or query, then around the sides of vectors, tiles and blocks of keys.
    edges = ((3, 5, 1), (1, 1, 1), (1, 64, 300), (13, 33, 129), (129, 64, 13), (25, 128, 257), (17, 257, 65))

    def draw(self, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator) -> Iterable[Array]:
        """Some queries are zero and values are 1 or 4, so that these queries show every missing key."""
        q, k, v = (generator.standard_normal(shape, np.float32) for shape in self.shapes(sizes)[:-1])
        q[::_EVERY] = 0
        return q, k, np.where(v > 0, np.float32(4), np.float32(1))

    @np.errstate(all="ignore")
    def reference(self, inputs: Sequence[Array]) -> Reference:
        q, k, v = (each.astype(np.float64) for each in inputs)
        (m, d), n = q.shape, len(k)
        precision = _Precision.of(inputs[0].dtype, self.result_dtype(inputs[0].dtype))
        value, bound, overflow = np.zeros((m, d)), np.zeros((m, d)), np.zeros((m, d), bool)
        rows = max(1, _PAIRS // n)
        for first in range(0, m, rows):
            some = slice(first, first + rows)
            value[some], bound[some], overflow[some] = _attended(q[some], k, v, precision)
        return Reference(value, (2 if inputs[0].dtype == np.float64 else 1) * bound, overflow)

    def flops(self, sizes: Sequence[int]) -> int:
        """Those of the two products. The exponentials are not counted."""
        m, d, n = sizes
        return 4 * m * n * d


@dataclass(frozen=True)
class _Precision:
    """Of the arithmetic.

    roundoff: its unit, where matrix units may cut off twice that.
    least: the most that a product or a sum loses to underflow.
    normal: what an input below it may count as zero for; 0 where none does.
    weight: the relative roundoff of a weight that is rounded to the inputs' format; else 0.
    lost: the most that a weight loses to underflow.
    largest: above which sums overflow.
    """

    roundoff: float
    least: float
    normal: float
    weight: float
    lost: float
    largest: float

    @classmethod
    def of(cls, dtype: np.dtype[Any], sums: np.dtype[Any]) -> _Precision:
        of_sums, digits = np.finfo(sums), _WEIGHT_DIGITS.get(dtype.name)
        tiny = float(of_sums.smallest_normal)
        to_zero = tiny if dtype.name == "bfloat16" else 0.0
        return cls(
            roundoff=float(of_sums.eps) / (1 if digits else 2),
            least=to_zero or float(of_sums.smallest_subnormal),
            normal=to_zero,
            weight=2.0**-digits if digits else 0.0,
            lost=2.0**-25 if dtype == np.float16 else tiny,
            largest=float(of_sums.max),
        )


def _attended(q: Array, k: Array, v: Array, precision: _Precision) -> tuple[Array, Array, Array]:
    """The results of some queries, their bounds, and where they may overflow."""
    (n, d), u = k.shape, precision.roundoff
    root = math.sqrt(d) or math.nan
    scores, reach = q @ k.T / root, np.abs(q) @ np.abs(k).T
    below = scores - scores.max(axis=1, keepdims=True, initial=-math.inf)
    weights = np.exp(below)
    total = weights.sum(axis=1, keepdims=True)
    share, size = weights / total, np.abs(v)
    value = weights @ v / total
    # No difference of scores counts where both are -infinity.
    apart = np.where(np.isfinite(below), np.abs(below), 0)
    error = u * ((d + 3) * reach / root + 2 * np.abs(scores) + 2 * apart) + _underflown(q, k, precision) / root
    error = np.where(np.isfinite(scores), error, 0)
    relative = np.expm1(error + 4 * u)
    shared, of_sum = share * relative, (share * relative).sum(axis=1, keepdims=True)
    mean = share @ size
    bound = (shared @ size + of_sum * mean) / (1 - of_sum)
    bound += ((2 * min(n, 6 * math.sqrt(n)) + 8) * u + precision.weight) * mean
    bound += 2 * precision.lost * (size.sum(axis=0) + n * mean) / total + (n + 2) * precision.least
    most = 2 * size.max(axis=0, initial=0)
    bound = np.where((of_sum < 1) & (bound < most), bound, most)
    bound = np.where(_is_plain_mean(q, v, precision), (min(n, 6 * math.sqrt(n)) + 3) * u * mean, bound)
    of_one_key, its_value = _is_of_one_key(below, error, v, precision)
    value, bound = np.where(of_one_key, its_value, value), np.where(of_one_key, 0, bound)
    # What is infinite or no number gives the same in any order, but for an infinite value whose weight may be lost.
    scores_overflow = (np.abs(_finite(q)) @ np.abs(_finite(k)).T > precision.largest / 2).any(axis=1, keepdims=True)
    sums_overflow = ~(size.sum(axis=0) < precision.largest / 2) & ~np.isnan(v).any(axis=0)
    return value, bound, scores_overflow | sums_overflow


def _underflown(q: Array, k: Array, precision: _Precision) -> Array:
    """What scores, times sqrt(d), lose to underflow of products and scaled queries, and of inputs taken for zero."""
    q, k = np.abs(q), np.abs(k)
    lost = precision.least * (q.shape[1] + 2 + q.sum(axis=1, keepdims=True) + k.sum(axis=1))
    if precision.normal:
        lost = lost + np.where(q < precision.normal, q, 0) @ k.T + q @ np.where(k < precision.normal, k, 0).T
    return np.asarray(lost)


def _finite(x: Array) -> Array:
    """The elements, and 0 in place of those that are infinite or no number."""
    return np.where(np.isfinite(x), x, 0.0)


def _is_plain_mean(q: Array, v: Array, precision: _Precision) -> Array:
    """Whether all weights are 1 and all sums exact: of each query and column of values."""
    whole = ((v == np.rint(v)).all(axis=0)) & (np.abs(v).sum(axis=0) <= 1 / precision.roundoff)
    return np.asarray(~q.any(axis=1, keepdims=True) & whole)


def _is_of_one_key(below: Array, error: Array, v: Array, precision: _Precision) -> tuple[Array, Array]:
    """Whether the largest score's value is the result, of each query and column, and that value.

    What the others add to it is lost in its rounding by far, even where matrix units cut off. It must not be so small
    that it may count as zero itself.
    """
    first = below.argmax(axis=1)
    queries = np.arange(len(below))
    others = np.exp(below + 2 * error.max(axis=1, keepdims=True, initial=0))
    others[queries, first] = 0
    winner = np.abs(v[first])
    added = others @ np.abs(v) + others.sum(axis=1, keepdims=True) * winner
    lost = (added < 2.0**-20 * precision.roundoff * winner) & np.isfinite(winner) & (winner >= precision.normal)
    return np.asarray(lost & (below[queries, first] == 0)[:, None]), v[first]


PROBLEM = Attention()
