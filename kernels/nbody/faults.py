"""Wrong answers of nbody, each wrong in one respect, the kinds of trials that must see it, and other right ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from py_backends.conformance.formats import limits
from py_backends.contract import Array

_FORMATS = ("float32", "float64")
_SOFTENING = 2.0**-10


def _wide(at: Array, position: Array, mass: Array, softening: float = _SOFTENING) -> Array:
    """The sums, in float64."""
    at, position, mass = (each.astype(np.float64) for each in (at, position, mass))
    d = position - at[:, None]
    weight = mass / ((d * d).sum(axis=2) + softening) ** 1.5
    return np.asarray(np.einsum("ij,ijk->ik", weight, d))


def _one_by_one(weight: Callable[[Array], Array], order: int, at: Array, position: Array, mass: Array) -> Array:
    """In the format of the inputs, body by body."""
    sums = np.zeros(at.shape, at.dtype)
    for body, of_body in zip(position[::order], mass[::order], strict=True):
        d = body - at
        square = d[:, 0] * d[:, 0] + d[:, 1] * d[:, 1] + d[:, 2] * d[:, 2] + d.dtype.type(_SOFTENING)
        sums += (of_body * weight(square))[:, None] * d
    return sums


def _by_roots(square: Array) -> Array:
    return np.asarray(square.dtype.type(1) / (square * np.sqrt(square)))


def _by_reciprocal_roots(square: Array) -> Array:
    """With an error of 2 ulp in each root, as on a GPU."""
    r = 1 / np.sqrt(square)
    r = np.nextafter(np.nextafter(r, 2 * r), 2 * r)
    return np.asarray(r * r * r)


def _by_third_powers(square: Array) -> Array:
    """Which leave the format where what they divide does not."""
    return np.asarray(1 / np.sqrt(square * square * square))


def _with_leading_ones(at: Array, position: Array, mass: Array) -> Array:
    """Subnormal masses get the leading one that only normal numbers have."""
    normal = mass.dtype.type(limits(mass.dtype).normal)
    return _wide(at, position, np.where((np.abs(mass) < normal) & (mass != 0), mass + np.copysign(normal, mass), mass))


def _loses_small_sums(at: Array, position: Array, mass: Array) -> Array:
    """As if sums were kept in half precision while bodies are added."""
    c, magnitude = _wide(at, position, mass), np.abs(_wide(at, position, np.abs(mass)))
    return np.where(np.abs(c) < magnitude / 2**4, 0, c)


Answer = Callable[[Array, Array, Array], Array]
RIGHT: dict[str, tuple[Answer, tuple[str, ...]]] = {
    "adds one by one": (lambda *inputs: _one_by_one(_by_roots, 1, *inputs), _FORMATS),
    "adds from the end": (lambda *inputs: _one_by_one(_by_roots, -1, *inputs), _FORMATS),
    "multiplies by roots that err": (lambda *inputs: _one_by_one(_by_reciprocal_roots, 1, *inputs), _FORMATS),
}
FAULTS: dict[str, tuple[Answer, tuple[str, ...], set[str]]] = {
    name: (answer, _FORMATS, kinds)
    for name, answer, kinds in (
        (
            "the last body is left out",
            lambda at, position, mass: _wide(at, position[:-1], mass[:-1]),
            {"few-bodies", "places", "compared"},
        ),
        (
            "all after whole registers are left out",
            lambda at, position, mass: _wide(at, position[: len(mass) // 16 * 16], mass[: len(mass) // 16 * 16]),
            {"few-bodies", "places", "compared"},
        ),
        (
            "the first body counts twice",
            lambda at, position, mass: _wide(
                at, np.concatenate([position[:1], position]), np.concatenate([mass[:1], mass])
            ),
            {"few-bodies", "places"},
        ),
        ("the direction is turned", lambda *inputs: -_wide(*inputs), {"few-bodies", "compared"}),
        ("axes are exchanged", lambda *inputs: _wide(*inputs)[:, [1, 0, 2]], {"few-bodies", "no-mass", "compared"}),
        (
            "the softening is missing",
            lambda at, position, mass: _wide(at, position, mass, softening=0),
            {"bodies-on-points", "compared"},
        ),
        (
            "masses are those of other bodies",
            lambda at, position, mass: _wide(at, position, np.roll(mass, 1)),
            {"no-mass", "places", "compared"},
        ),
        (
            "a body without mass has one",
            lambda at, position, mass: _wide(at, position, np.where(mass == 0, 1, mass)),
            {"no-mass", "places"},
        ),
        ("roots are estimates alone", lambda *inputs: _wide(*inputs) * (1 + 2**-12), {"few-bodies", "compared"}),
        (
            "points are exchanged",
            lambda at, position, mass: _wide(at[::-1], position, mass),
            {"few-bodies", "compared"},
        ),
        ("subnormal masses get a leading one", _with_leading_ones, {"subnormals"}),
        (
            "large masses are cut off",
            lambda at, position, mass: _wide(at, position, np.clip(mass, -1e30, 1e30)),
            {"overflow"},
        ),
        (
            "what is not finite is a number",
            lambda at, position, mass: _wide(*(np.nan_to_num(x, posinf=1, neginf=1) for x in (at, position, mass))),
            {"special-values"},
        ),
        ("small sums are lost", _loses_small_sums, {"cancellation"}),
    )
}
FAULTS["third powers leave the format"] = (
    lambda *inputs: _one_by_one(_by_third_powers, 1, *inputs),
    ("float32",),
    {"distances"},
)
