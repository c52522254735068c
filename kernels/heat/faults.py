"""Wrong answers of heat, each wrong in one respect, the kinds of trials that must see it, and other right ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from py_backends.conformance.formats import limits
from py_backends.contract import Array

_FORMATS = ("float32", "float64")


def _step(u: Array) -> Array:
    """One step in the format of u."""
    after = u.copy()
    sums = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    after[1:-1, 1:-1] = u[1:-1, 1:-1] / 2 + sums / 8
    return after


def _in_another_order(u: Array) -> Array:
    """The same with each term divided by itself, and added in another order."""
    after, eighths = u.copy(), u / 8
    sums = eighths[1:-1, 2:] + (eighths[1:-1, :-2] + (eighths[2:, 1:-1] + u[1:-1, 1:-1] / 2))
    after[1:-1, 1:-1] = sums + eighths[:-2, 1:-1]
    return after


def _after(u: Array, steps: int, one: Callable[[Array], Array] = _step) -> Array:
    u = u.copy()
    for _ in range(steps):
        u = one(u)
    return u


def _with(u: Array, change: Callable[[Array], None]) -> Array:
    """A result in which something is changed, where there is an interior."""
    if min(u.shape) >= 3:
        change(u)
    return u


def _at(u: Array, steps: int, place: tuple[int, int], of: tuple[int, int]) -> Array:
    """The right result, but with an element of the input at one place."""
    return _with(_after(u, steps), lambda c: c.__setitem__(place, u[of]))


def _by_rows_alone(u: Array) -> Array:
    after = u.copy()
    after[1:-1, 1:-1] = u[1:-1, 1:-1] / 2 + (u[:-2, 1:-1] + u[2:, 1:-1]) / 4
    return after


def _with_a_corner(u: Array) -> Array:
    """The neighbour above the first interior element is the one beside it."""
    after = _step(u)
    if min(u.shape) >= 3:
        after[1, 1] = u[1, 1] / 2 + (u[0, 0] + u[2, 1] + u[1, 0] + u[1, 2]) / 8
    return after


def _divided_at_the_end(u: Array) -> Array:
    after = u.copy()
    sums = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    after[1:-1, 1:-1] = (4 * u[1:-1, 1:-1] + sums) / 8
    return after


def _with_one_exponent(u: Array, steps: int) -> Array:
    """As if an array had one exponent, and a fixed point."""
    if not (u.size and np.isfinite(u).all()):
        return _after(u, steps)
    unit = float(np.abs(u).max()) / 2**20 or 1.0
    return _after((np.round(u.astype(np.float64) / unit) * unit).astype(u.dtype), steps)


def _with_leading_ones(u: Array, steps: int) -> Array:
    """Subnormal numbers get the leading one that only normal ones have."""
    normal = u.dtype.type(limits(u.dtype).normal)
    return _after(np.where((np.abs(u) < normal) & (u != 0), u + np.copysign(normal, u), u), steps)


def _without_infinity(u: Array, steps: int) -> Array:
    return np.nan_to_num(_after(u, steps), nan=0, posinf=1, neginf=-1)


Answer = Callable[[Array, int], Array]
RIGHT: dict[str, tuple[Answer, tuple[str, ...]]] = {
    "adds in another order": (lambda u, steps: _after(u, steps, _in_another_order), _FORMATS),
}
FAULTS: dict[str, tuple[Answer, tuple[str, ...], set[str]]] = {
    name: (answer, _FORMATS, kinds)
    for name, answer, kinds in (
        ("a step is skipped", lambda u, steps: _after(u, steps - 1), {"exact-steps", "steps", "places", "compared"}),
        (
            "a step is taken twice",
            lambda u, steps: _after(u, steps + 1),
            {"exact-steps", "steps", "places", "compared"},
        ),
        (
            "the other buffer is the result",
            lambda u, steps: _after(u, steps - 1 if steps > 1 else 0),
            {"exact-steps", "steps", "compared"},
        ),
        (
            "a corner of the boundary is touched",
            lambda u, steps: _with(_after(u, steps), lambda c: c.__setitem__((0, 0), 0.5 * u[0, 0])),
            {"steps", "places", "compared"},
        ),
        (
            "the boundary's last column is touched",
            lambda u, steps: _at(u, steps, (1, -1), (1, -2)),
            {"steps", "places", "compared"},
        ),
        (
            "the corner of the interior stays",
            lambda u, steps: _at(u, steps, (1, 1), (1, 1)),
            {"exact-steps", "places", "compared"},
        ),
        (
            "the last column of the interior stays",
            lambda u, steps: _at(u, steps, (1, -2), (1, -2)),
            {"exact-steps", "compared"},
        ),
        (
            "the boundary is computed",
            lambda u, steps: _after(np.pad(u, 1, mode="edge") if u.size else u, steps)[1:-1, 1:-1] if u.size else u,
            {"no-interior", "steps", "compared"},
        ),
        (
            "the boundary is taken for zeros",
            lambda u, steps: _after(np.pad(u[1:-1, 1:-1], 1) if min(u.shape) >= 3 else u, steps),
            {"no-interior", "places", "compared"},
        ),
        (
            "rows are read where columns are meant",
            lambda u, steps: _after(u, steps, _by_rows_alone),
            {"exact-steps", "places", "compared"},
        ),
        (
            "a corner stands for a neighbour",
            lambda u, steps: _after(u, steps, _with_a_corner),
            {"exact-steps", "compared"},
        ),
        (
            "sums are divided at the end",
            lambda u, steps: _after(u, steps, _divided_at_the_end),
            {"large-numbers", "overflow"},
        ),
        ("infinity is a number", _without_infinity, {"special-values"}),
        ("an infinite input is zero", lambda u, steps: _after(np.nan_to_num(u), steps), {"special-values"}),
        ("subnormal numbers get a leading one", _with_leading_ones, {"subnormals"}),
        ("an array has one exponent", _with_one_exponent, {"scales"}),
    )
}
