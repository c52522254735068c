"""What the format of a result makes of numbers with errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from open_sums import DOUBLE, SINGLE, spread

from py_backends.bounds.array import Bounded
from py_backends.bounds.precision import Precision
from py_backends.bounds.result import judged

INF, NAN, U = np.inf, np.nan, 2.0**-24
FROM_HALF = Precision.of(np.dtype(np.float16), np.dtype(np.float32))


JUDGED = {
    # value, error, further fields; then the value, the bound and the overflow of a float32
    "exact": (0.5, 0.0, {}, 0.5, 0.0, False),
    "with an error": (0.5, 0.25, {}, 0.5, 0.25, False),
    "one rounding": (0.1, 0.0, {"roundings": 1.0}, float(np.float32(0.1)), 0.0, False),
    "one addition": (0.1, 0.0, {"terms": 2.0}, float(np.float32(0.1)), 0.0, False),
    "one product": (0.1, 0.0, {"roundings": 1.0, "losses": 1.0}, float(np.float32(0.1)), 0.0, False),
    "two roundings": (0.1, 0.0, {"roundings": 2.0}, 0.1, 2 * 0.1 * U, False),
    "two additions": (0.1, 0.0, {"terms": 3.0}, 0.1, 2 * 0.1 * U, False),
    "a rounding and an addition": (0.1, 0.0, {"roundings": 1.0, "terms": 2.0}, 0.1, 2 * 0.1 * U, False),
    "a loss in a sum": (0.1, 0.0, {"terms": 2.0, "losses": 1.0}, 0.1, 0.1 * U, False),
    "two losses": (0.1, 0.0, {"roundings": 1.0, "losses": 2.0}, 0.1, 0.1 * U, False),
    "less than its rounding": (0.1, 1e-12, {}, 0.1, float(np.float32(0.1)) - 0.1, False),
    "less than its rounding, or overflow": (0.1, 1e-12, {"overflow": True}, 0.1, float(np.float32(0.1)) - 0.1, True),
    "infinite": (INF, 0.0, {}, INF, 0.0, False),
    "no number": (NAN, 0.0, {}, NAN, 0.0, False),
    "overflow": (1.0, 0.0, {"overflow": True, "roundings": 2.0}, 1.0, 2 * U, True),
    "too large": (4e38, 1e30, {"overflow": True}, 4e38, 1e30, True),
    "unknown": (1.0, NAN, {}, 1.0, INF, False),
    "anything": (NAN, INF, {"overflow": True}, 0.0, INF, True),
    "infinite by overflow": (INF, INF, {"overflow": True}, 0.0, INF, True),
}


@pytest.mark.parametrize("name", JUDGED)
def test_what_a_format_makes_of_a_number(name: str) -> None:
    value, error, others, right, bound, overflow = JUDGED[name]
    with np.errstate(all="ignore"):
        found = judged(Bounded(SINGLE, [value], error, **others), np.dtype(np.float32))
    assert found.value.tolist() == pytest.approx([right], nan_ok=True)
    assert found.bound == pytest.approx([bound], rel=1e-5, abs=1e-44)
    assert (found.overflow is not None) == overflow
    assert found.bound[0] > 0 or bound == 0
    if bound == 0 and np.isfinite(value):
        assert found.value[0] == right


def test_a_narrow_result_rounds_once_more() -> None:
    half = np.dtype(np.float16)
    x = spread([1.0, 1.0, 0.1, 65504.0, 65504.0, 65500.0, NAN], [0.25, 0.0, 1e-9, 0.0, 1.0, 1.0, 0.0], FROM_HALF)
    with np.errstate(all="ignore"):
        found = judged(x, half)
    reach = np.abs(x.value) + x.error
    right = np.where(x.error > 0, x.error + 2.0**-11 * reach + 2.0**-24, 0)
    assert found.bound == pytest.approx(right)
    assert found.overflow.tolist() == [False, False, False, False, True, True, False]
    assert not judged(spread([65000.0], [1.0], FROM_HALF), half).overflow
    wide = judged(spread([1.0], [0.25], DOUBLE), np.dtype(np.float32))
    assert wide.bound == pytest.approx(0.25 + U * 1.25, rel=1e-12)
    same = judged(spread([1.0], [0.25]), np.dtype(np.float32))
    assert same.bound == 0.25
    wider = judged(Bounded(SINGLE, [0.1], roundings=1.0), np.dtype(np.float64))
    assert wider.bound == pytest.approx(0.1 * U, rel=1e-3), "it is not known how the kernel stores it"


def test_without_nearest_numbers_one_operation_has_two_results() -> None:
    cut = replace(SINGLE, nearest=False)
    assert judged(Bounded(cut, [0.1], roundings=1.0), np.dtype(np.float32)).bound > 0
    with np.errstate(all="ignore"):
        huge = judged(Bounded(cut, [4e38], roundings=1.0), np.dtype(np.float32))
    assert huge.overflow.all()


def test_matrix_units_flush_what_was_computed_alone() -> None:
    flushing = Precision.of(np.dtype("bfloat16"), np.dtype(np.float32))
    tiny = flushing.normal / 2
    for value, roundings, exact in ((tiny, 1.0, False), (tiny, 0.0, True), (2 * tiny, 1.0, True), (-tiny, 1.0, False)):
        found = judged(Bounded(flushing, [value], roundings=roundings), np.dtype(np.float32))
        assert (found.bound == 0) == exact
    assert (judged(Bounded(SINGLE, [tiny], roundings=1.0), np.dtype(np.float32)).bound == 0).all()
