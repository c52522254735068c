"""What attention is tried with beyond sizes: missing keys, scores far apart or infinite, and values that cancel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from py_backends.conformance.formats import FLOATS, limits
from py_backends.conformance.trials import Draw, Inputs, Kind, OfKernel, Shapes, Trial, drawn_from, named, of_sizes
from py_backends.contract import Problem

_SIZES = ((19, 17, 70), (13, 33, 129), (70, 5, 33))
_MORE_SIZES = ((1, 1, 1), (2, 64, 2), (1, 128, 300), (33, 257, 17), (65, 64, 257), (130, 33, 64))
_WIDTHS = (1, 33, 64, 128, 257)
_FEW_KEYS = (1, 2, 3, 17)
_APART = 200
"""Of two scores, so that the weight of the smaller one is lost."""


def _at_sizes(draws: dict[str, Draw], problem: Problem) -> Iterator[Trial]:
    """Ways to draw the inputs, by names with placeholders for the sizes."""
    yield from of_sizes((*_SIZES, *_MORE_SIZES), draws, thorough=_MORE_SIZES)


def _plain(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Queries of zeros, which weigh all keys alike, and values of 1 and 4, whose sums are exact."""
    q, k, v = drawn_from((), shapes, dtype, generator)
    q[...] = 0
    v[...] = generator.choice([1, 4], v.shape)
    return [q, k, v]


def _few_keys(problem: Problem) -> Iterator[Trial]:
    for n, d in ((n, d) for n in _FEW_KEYS for d in _WIDTHS):
        ways: dict[str, Draw] = {"": partial(drawn_from, ()), ", alike": _plain}
        for what, draw in ways.items():
            thorough = (n, d) not in ((1, 33), (2, 64), (17, 1), (3, 128))
            yield Trial(f"{named((14, d, n))}{what}", (14, d, n), draw, thorough=thorough)


def _one_value(which: int, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """All keys weigh alike, and the values of all but one are 0."""
    q, k, v = _plain(shapes, dtype, generator)
    v[:which] = v[which + 1 :] = 0
    return [q, k, v]


def _places(problem: Problem) -> Iterator[Trial]:
    """Each key alone counts, at the ends of blocks and within them."""
    n = 300
    for which in (0, 1, 15, 16, 31, 32, 63, 64, 127, 128, 255, 256, n - 2, n - 1):
        draw = partial(_one_value, which)
        yield Trial(f"value {which} of {n}", (9, 21, n), draw, thorough=which not in (0, 128, 255, n - 1))


def _of_few_products(problem: Problem) -> Iterator[Trial]:
    """Scores so large that what they lose in rounding is more than the difference that counts.

    Where a score is computed twice, and rounded only once, no score is 0 after the largest is taken off.
    """
    for d in (1, 2, 3):
        yield Trial(f"{named((14, d, 33))}", (14, d, 33), partial(_scaled, 1e10), dtypes=("float32", "bfloat16"))


Order = Callable[[int, np.random.Generator], np.ndarray[Any, Any]]
_ORDERS: dict[str, Order] = {
    "ascending": lambda n, _: np.arange(n),
    "descending": lambda n, _: np.arange(n)[::-1],
    "shuffled": lambda n, generator: generator.permutation(n),
}


def _far_apart(order: Order, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Scores so far apart that only the largest one's value counts: it is the result, bit for bit."""
    q, k, v = drawn_from((), shapes, dtype, generator)
    (_, d), n = q.shape, len(k)
    q[...] = k[...] = 0
    q[:, 0] = _APART * np.ceil(np.sqrt(d))
    k[:, 0] = np.arange(n)[order(n, generator)]
    q[::3] *= -1  # the least key is the largest score of these
    return [q, k, v]


def _winners(problem: Problem) -> Iterator[Trial]:
    for (name, order), n in ((each, n) for each in _ORDERS.items() for n in (33, 2, 130, 256)):
        for d in (17, 1, 64):
            draw = partial(_far_apart, order)
            yield Trial(f"{named((20, d, n))}, {name}", (20, d, n), draw, thorough=(n, d) != (33, 17))


def _scaled(score: float, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Scores of about that size, of both signs."""
    q, k, v = drawn_from((), shapes, dtype, generator)
    scale = min(np.sqrt(score), float(limits(dtype).largest) / 8)
    return [(each.astype(np.float64) * scale).astype(dtype) for each in (q, k)] + [v]


def _all_scores(score: float, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """All scores are about that: too large or too small for an exponential of their own."""
    q, k, v = drawn_from((), shapes, dtype, generator)
    d = q.shape[1]
    q[:, 1:] /= 64
    k[:, 1:] /= 64
    q[:, 0], k[:, 0] = np.sqrt(abs(score) * np.sqrt(d)), np.copysign(np.sqrt(abs(score) * np.sqrt(d)), score)
    return [q, k, v]


def _masked(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Scores of -infinity, which weigh nothing. Of some queries all are; of others, some are infinite."""
    q, k, v = drawn_from((), shapes, dtype, generator)
    q[:, 0] = abs(q[:, 0].astype(np.float64)) + 1
    k[:, 1:2] = abs(k[:, 1:2].astype(np.float64)) + 1
    q[2::5, 1:2] = -np.inf
    n = len(k)
    hidden = generator.random(n) < 0.5
    hidden[0] = True
    hidden[-1] = n == 1
    k[hidden, 0] = -np.inf
    q[::5, 0] = -np.inf
    k[:, 0] = np.where(hidden, k[:, 0], np.abs(k[:, 0].astype(np.float64)) + 1).astype(dtype)
    return [q, k, v]


def _masked_first(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """The same, and the first keys have no other score: whole blocks of them weigh nothing."""
    q, k, v = _masked(shapes, dtype, generator)
    k[: 3 * len(k) // 4, 0] = -np.inf
    return [q, k, v]


def _special(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """A query, a key or a value that is infinite or no number."""
    inputs = drawn_from((), shapes, dtype, generator)
    for array, value in zip(inputs, generator.permutation([np.inf, np.nan, -np.inf]), strict=True):
        if array.size and generator.random() < 0.5:
            array.reshape(-1)[generator.integers(array.size)] = value
    return inputs


def _subnormal(which: int, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    inputs = drawn_from((), shapes, dtype, generator)
    inputs[which][...] = limits(dtype).least * generator.integers(-40, 40, inputs[which].shape)
    return inputs


def _just_below_overflow(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Values of which no sum overflows, whatever their weights. What may overflow would excuse any result."""
    q, k, v = drawn_from((), shapes, dtype, generator)
    v[...] = np.sign(v) * dtype.type(limits(dtype).largest / (4 * len(v)))
    return [q, k, v]


def _opposite(shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    """Values of both signs, whose mean is far smaller than they are."""
    q, k, v = drawn_from((), shapes, dtype, generator)
    half = len(k) // 2
    k[half : 2 * half] = k[:half]
    v[half : 2 * half] = -v[:half]
    return [q, k, v]


_KINDS = (
    Kind("few-keys", "a key that is left out, counted twice, or filled up, at each width", _few_keys),
    Kind("places", "a key that is missing at the end of a block or of a register", _places),
    Kind("far-apart", "scores that are not made smaller when a larger one comes, or by another one", _winners),
    Kind("means", "weights that are rounded twice", partial(_at_sizes, {"{}": _plain})),
    Kind(
        "scores",
        "scores whose exponentials overflow or vanish, where the largest is not taken off",
        partial(
            _at_sizes,
            {
                **{f"{{}}, scores of about {score:g}": partial(_scaled, score) for score in (1e-3, 30, 1e4)},
                **{f"{{}}, all scores {score:g}": partial(_all_scores, score) for score in (1e4, -1e4)},
            },
        ),
    ),
    Kind("few-products", "a score that is another number where the largest is taken off it", _of_few_products),
    Kind(
        "masked",
        "scores of -infinity that turn into NaN",
        partial(_at_sizes, {"{}": _masked, "{}, the first keys": _masked_first}),
        dtypes=FLOATS,
    ),
    Kind(
        "subnormals",
        "numbers that are flushed to zero",
        partial(_at_sizes, {f"{{}}, {name}": partial(_subnormal, which) for which, name in enumerate("qkv")}),
        dtypes=FLOATS,
    ),
    Kind("overflow", "sums that overflow too early", partial(_at_sizes, {"{}": _just_below_overflow}), dtypes=FLOATS),
    Kind("special-values", "NaN and infinity that are lost", partial(_at_sizes, {"{}": _special}), dtypes=FLOATS),
    Kind("cancellation", "means far smaller than the values", partial(_at_sizes, {"{}": _opposite}), dtypes=FLOATS),
)
TRIALS = OfKernel(
    _KINDS,
    # one, and one below, at and above each width of vectors, tiles and work groups
    few=[
        (1, 1, 1), (17, 33, 65), (33, 17, 16), (65, 64, 129), (2, 3, 5), (3, 2, 7), (7, 8, 9), (8, 7, 15), (9, 15, 8),
        (15, 16, 17), (16, 9, 31), (31, 64, 32), (32, 63, 33), (63, 65, 63), (64, 31, 64), (129, 1, 257),
        (12, 128, 130), (13, 257, 3),
    ],
    larger=[(150, 65, 301), (301, 33, 150)],
    shared=(300, 32, 301),
    of_several_pages=[(150, 40, 700), (700, 40, 150), (300, 70, 300)],
    of_tiles=[(63, 64, 127), (64, 64, 128), (65, 65, 129), (31, 128, 33), (33, 127, 257)],
)  # fmt: skip
