"""What `heat` promises: exact steps, what may overflow, infinities that must spread, and no steps of nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import py_backends as pb
from py_backends import registry
from py_backends.contract import Array
from py_backends.results.check import check_output

HEAT = registry.problem("heat")


def step(u: Array) -> Array:
    """One step in the format of u."""
    after = u.copy()
    sums = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    after[1:-1, 1:-1] = u[1:-1, 1:-1] / 2 + sums / 8
    return after


def other_order(u: Array) -> Array:
    """The same with each term divided by itself, and added in another order."""
    after = u.copy()
    eighths = u / 8
    sums = eighths[1:-1, 2:] + (eighths[1:-1, :-2] + (eighths[2:, 1:-1] + u[1:-1, 1:-1] / 2))
    after[1:-1, 1:-1] = sums + eighths[:-2, 1:-1]
    return after


def after(u: Array, steps: int, one: Callable[[Array], Array] = step) -> Array:
    for _ in range(steps):
        u = one(u)
    return u


def judged(u: Array, steps: int, result: Array) -> bool:
    """Whether a result passes."""
    return bool(check_output(result, HEAT.reference([u], steps), HEAT.rule).check.passed)


def changed(u: Array, at: tuple[int, int], to: float) -> Array:
    result = u.copy()
    result[at] = to
    return result


@pytest.mark.parametrize(("most", "steps"), [(2**21, 1), (2**9, 5), (1, 8)])
def test_small_whole_numbers_are_exact(most: int, steps: int) -> None:
    u = np.random.default_rng(1).integers(-most, most, (30, 20), endpoint=True).astype("float32")
    u[3, 4] = most
    reference = HEAT.reference([u], steps)
    assert reference.bound is not None
    assert not reference.bound.any()
    assert judged(u, steps, after(u, steps, other_order))
    assert HEAT.reference([2 * u], steps).bound.any(), "one digit more is too much"


def test_what_may_overflow_is_excused_and_nothing_else() -> None:
    """Four neighbours overflow before they are divided; it spreads by an element a step."""
    u = np.ones((9, 9), "float32")
    u[3:6, 3:6] = np.finfo("float32").max / 2
    reference = HEAT.reference([u], 1)
    assert reference.overflow is not None
    assert reference.overflow[4, 4]
    assert not reference.overflow[1, 1]
    with np.errstate(over="ignore"):
        result, third = after(u, 1, step), after(u, 3, step)
    assert np.isinf(result[4, 4])
    assert judged(u, 1, result)
    assert judged(u, 1, after(u, 1, other_order)), "it need not overflow"
    assert not judged(u, 1, changed(result, (1, 1), np.inf))
    assert judged(u, 3, third)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("wrong", [0.5, -np.inf, np.nan])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_an_infinity_that_is_given_must_reach_its_neighbours(wrong: float, steps: int) -> None:
    """It excuses nothing: only what overflows does."""
    u = np.ones((9, 9), "float32")
    u[4, 4] = np.inf
    right = after(u, steps)
    assert judged(u, steps, right)
    assert not judged(u, steps, changed(right, (3, 4), wrong))
    assert not judged(u, steps, changed(right, (4 - steps, 4), wrong))
    u[2, 4] = u[3, 3] = u[3, 5] = np.finfo("float32").min / 2
    assert judged(u, steps, changed(after(u, steps), (3, 4), np.nan)), "finite neighbours may overflow beside it"


@pytest.mark.parametrize("sizes", [(rows, columns) for rows in range(4) for columns in range(4)])
def test_without_an_interior_it_is_a_copy(sizes: tuple[int, int]) -> None:
    u = np.random.default_rng(1).standard_normal(sizes).astype("float32")
    assert judged(u, 3, after(u, 3))
    assert judged(u, 3, u) or min(sizes) >= 3


def test_what_must_be_exchanged_is_no_more_than_rows_exchange() -> None:
    """Rows of the lecture's layout, and blocks that are nearly square."""
    for ranks, sizes in ((2, (4096, 4096, 1)), (16, (512, 512, 3)), (4, (20, 3000, 2))):
        m, n, _ = sizes
        least = HEAT.least_communication(sizes, np.dtype("float32"), ranks)
        assert least is not None
        assert 0 < least <= 4 * 2 * min(n, m)
    assert HEAT.least_communication((4096, 4096, 0), np.dtype("float32"), 4) == 0


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "backend",
    [
        *(pytest.param(each, marks=getattr(pytest.mark, each)) for each in ("cpp", "openmp", "avx", "stdpar", "jax")),
        pytest.param("numba_cpu", marks=[pytest.mark.numba_cpu, pytest.mark.slow]),  # it compiles for 10 s
    ],
)
@pytest.mark.parametrize("shape", [(2, 9), (9, 2)])
def test_without_an_interior_there_are_no_steps(backend: str, shape: tuple[int, int]) -> None:
    """None of these looks at a signal while it computes: they would not end today."""
    u = np.arange(18, dtype=np.float32).reshape(shape)
    for variant in ("lecture", "tuned", "rows_in_cache"):
        try:
            made = pb.heat(u, steps=10**12, backend=backend, variant=variant)
        except (pb.BackendUnavailable, ValueError):  # not here, or without this variant
            continue
        np.testing.assert_array_equal(made, u)
