"""What the reference of `nbody` promises: single pairs that show, and the ends of the format."""

from __future__ import annotations

import numpy as np
import pytest

from py_backends import registry
from py_backends.contract import Array
from py_backends.results.check import check_output, references_of

NBODY = registry.problem("nbody")
Bodies = tuple[Array, Array, Array]


def drawn(m: int, n: int, dtype: str = "float32", seed: int = 1) -> Bodies:
    at, position, mass = NBODY.draw((m, n), np.dtype(dtype), np.random.default_rng(seed))
    return at.astype(dtype), position.astype(dtype), mass.astype(dtype)


def terms(at: Array, position: Array, mass: Array) -> Array:
    """What each body gives each point, in float64."""
    at, position, mass = (each.astype(np.float64) for each in (at, position, mass))
    d = position - at[:, None]
    return mass[:, None] * d / ((d * d).sum(axis=2) + 2**-10)[..., None] ** 1.5


def judged(inputs: Bodies, result: Array) -> bool:
    """Whether a result passes."""
    output = np.ascontiguousarray(result.astype(inputs[0].dtype))
    return bool(check_output(output, NBODY.reference(list(inputs)), NBODY.rule).check.passed)


@pytest.mark.parametrize(("n", "asked"), [(1, 1.0), (2, 1.0), (17, 1.0), (1000, 0.95)])
@pytest.mark.parametrize("times", [0, 2])
def test_a_pair_that_is_dropped_or_doubled_is_seen(n: int, asked: float, times: int) -> None:
    """Each pair of a few points alone: those that are seen, of all."""
    m = max(1, 40 // n)
    at, position, mass = inputs = drawn(m, n, seed=3)
    each = terms(at, position, mass)
    right, seen = each.sum(axis=1), 0
    reference = NBODY.reference(list(inputs))
    for i in range(m):
        for j in range(n):
            result = right.copy()
            result[i] += (times - 1) * each[i, j]
            passed = check_output(result.astype("float32"), reference, NBODY.rule).check.passed
            seen += not passed
    assert seen >= asked * m * n


def test_a_body_gives_itself_nothing() -> None:
    at, _, mass = drawn(17, 17)
    assert judged((at, at, mass), terms(at, at, mass).sum(axis=1))
    assert not terms(at[:1], at[:1], mass[:1]).any()


def test_the_third_power_of_a_distance_may_overflow_where_the_term_does_not() -> None:
    """In float64, whose reference has no wider format."""
    inputs = (np.zeros((1, 3)), np.array([[1e103, 0, 0]]), np.array([1e200]))
    root = 1e103
    assert judged(inputs, np.array([[1e200 * (1 / root) ** 3 * 1e103, 0, 0]]))
    assert judged(inputs, np.array([[1e200 / root / root / root * 1e103, 0, 0]]))
    assert not judged(inputs, np.array([[1e-3, 0, 0]]))


@pytest.mark.parametrize("distance", [1e-20, 1e19, 1e25])
def test_terms_at_the_ends_of_the_format_may_be_lost_but_not_be_more(distance: float) -> None:
    at = np.zeros((1, 3), "float32")
    position = np.array([[distance, 0, 0], [1, 0, 0]], "float32")
    mass = np.ones(2, "float32")
    near = terms(at, position[1:], mass[1:]).sum(axis=1)
    assert judged((at, position, mass), near)
    assert not judged((at, position, mass), 2 * near)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("signs", [(1, 1), (1, -1)])
def test_a_sum_may_overflow_where_no_term_does(signs: tuple[int, int], dtype: str) -> None:
    largest = np.finfo(dtype).max
    at, position = np.zeros((1, 3), dtype), np.tile(np.array([1.2, 0, 0], dtype), (16, 1))
    mass = np.repeat(np.array(signs, dtype) * (largest / 4), 8)
    (reference,) = references_of(NBODY, [at, position, mass], (1, 16), at.dtype)
    assert reference.overflow is not None
    for result in (np.inf, np.nan):
        assert judged((at, position, mass), np.array([[result, 0, 0]]))
        assert not judged((at, position, mass), np.array([[0, result, 0]]))
        assert not judged((at, position, mass / 100), np.array([[result, 0, 0]]))


@pytest.mark.filterwarnings("ignore:(invalid value|divide by zero):RuntimeWarning")
@pytest.mark.parametrize("of", range(3))
def test_infinity_that_is_given_must_show(of: int) -> None:
    """An infinite mass, or one infinite coordinate: what is lost then is seen, and a wrong sign too."""
    inputs = drawn(5, 17)
    inputs[of].reshape(-1)[4] = np.inf
    right = terms(*inputs).sum(axis=1)
    assert not np.isfinite(right).all()
    assert judged(inputs, right)
    assert not judged(inputs, np.where(np.isfinite(right), right, 0))
    assert not judged(inputs, np.where(np.isfinite(right), right, np.where(np.isinf(right), -right, np.inf)))


def test_every_rank_needs_all_other_bodies() -> None:
    assert NBODY.least_communication((10, 100), np.dtype("float32"), 4) == 4 * 75 * 4
    assert NBODY.least_communication((10, 100), np.dtype("float32"), 1) == 0
    assert NBODY.least_communication((0, 100), np.dtype("float32"), 4) == 0
