"""What the check of `attention` sees: missing keys, those counted twice, and maxima and rescaling that are left out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import py_backends as pb
from py_backends import registry
from py_backends.conformance.trials import of_kernel
from py_backends.contract import Array
from py_backends.results.check import check_output

ATTENTION = registry.problem("attention")
DTYPES = ("float32", "float64", "float16", "bfloat16")
NARROW = ("float16", "bfloat16")
Inputs = list[Array]


def drawn(m: int, d: int, n: int, dtype: str = "float32", seed: int = 1) -> Inputs:
    arrays = ATTENTION.draw((m, d, n), np.dtype(dtype), np.random.default_rng(seed))
    return [each.astype(dtype) for each in arrays]


def of_trials(kind: str, dtype: str) -> list[Inputs]:
    """The inputs of the suite's trials of a kind."""
    (found,) = (each for each in of_kernel("attention").kinds if each.name == kind)
    return [trial.inputs(ATTENTION, np.dtype(dtype)) for trial in found.cases(ATTENTION)]


def judged(inputs: Inputs, result: Array) -> bool:
    """Whether a result passes."""
    output = np.ascontiguousarray(result.astype(ATTENTION.result_dtype(inputs[0].dtype)))
    return bool(check_output(output, ATTENTION.reference(inputs), ATTENTION.rule).check.passed)


def rounded(x: Array, dtype: np.dtype) -> Array:
    return x.astype(dtype).astype(x.dtype)


def scores_of(q: Array, k: Array) -> Array:
    """In the format of sums, by which also the rest is computed."""
    sums = ATTENTION.result_dtype(q.dtype)
    return np.asarray(q.astype(sums) @ k.astype(sums).T / sums.type(np.sqrt(q.shape[1])))


def in_three_passes(q: Array, k: Array, v: Array, *, narrow_weights: bool = False) -> Array:
    scores = scores_of(q, k)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    of_values = rounded(weights, q.dtype) if narrow_weights else weights
    return np.asarray(of_values @ v.astype(weights.dtype) / weights.sum(axis=1, keepdims=True))


def by_blocks(q: Array, k: Array, v: Array, block: int, *, rescales: bool = True) -> Array:
    """With a running maximum, and blocks of keys."""
    scores, sums = scores_of(q, k), ATTENTION.result_dtype(q.dtype)
    largest = np.full((len(q), 1), -np.inf, sums)
    total, c = np.zeros_like(largest), np.zeros(q.shape, sums)
    for first in range(0, len(k), block):
        some = slice(first, first + block)
        larger = np.maximum(largest, scores[:, some].max(axis=1, keepdims=True))
        kept = np.exp(largest - larger) if rescales else np.ones_like(largest)
        weights = np.exp(scores[:, some] - larger)
        total = total * kept + weights.sum(axis=1, keepdims=True)
        c = c * kept + weights @ v[some].astype(sums)
        largest = larger
    return np.asarray(c / total)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "d", "n"), [(9, 1, 1), (16, 33, 17), (16, 64, 300), (8, 257, 1000), (3, 5, 20_000)])
def test_right_results_pass_in_any_order_and_form(m: int, d: int, n: int, dtype: str) -> None:
    for seed in range(3):
        inputs = q, k, v = drawn(m, d, n, dtype, seed)
        assert judged(inputs, in_three_passes(q, k, v))
        assert judged(inputs, in_three_passes(q, k[::-1], v[::-1]))
        assert judged(inputs, by_blocks(q, k, v, 16))
        assert dtype not in NARROW or judged(inputs, in_three_passes(q, k, v, narrow_weights=True))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 17, 300, 4096])
@pytest.mark.parametrize("times", [0, 2])
def test_a_key_that_is_dropped_or_counted_twice_is_seen(n: int, times: int, dtype: str) -> None:
    """In what comparisons draw, whichever key it is."""
    q, k, v = drawn(8, 33, n, dtype, seed=3)
    reference = ATTENTION.reference([q, k, v])
    right = q[:1].astype("float64"), k.astype("float64"), v.astype("float64")
    for key in {0, n // 2, n - 1}:
        counts = np.ones((n, 1))
        counts[key] = times
        if not counts.any():
            continue
        with np.errstate(invalid="ignore"):
            wrong = (counts * right[2]).sum(axis=0) / counts.sum()
        output = in_three_passes(q, k, v)
        output[0] = wrong
        seen = not check_output(output, reference, ATTENTION.rule).check.passed
        assert seen or np.allclose(wrong, right[2].mean(axis=0), rtol=1e-7)


FAULTS: dict[str, Callable[[Array, Array, Array], Array]] = {
    "the last key is left out": lambda q, k, v: in_three_passes(q, k[:-1], v[:-1]),
    "all keys after whole registers are left out": lambda q, k, v: in_three_passes(q, k[:16], v[:16]),
    "a key is counted twice": lambda q, k, v: in_three_passes(q, np.vstack([k, k[:1]]), np.vstack([v, v[:1]])),
    "a key is filled up with zeros": lambda q, k, v: in_three_passes(q, *(np.vstack([x, 0 * x[:1]]) for x in (k, v))),
    "scores are not divided by the root of d": lambda q, k, v: in_three_passes(q * k.dtype.type(4), k, v),
    "what was summed before is not made smaller": lambda q, k, v: by_blocks(q, k, v, 4, rescales=False),
    "values are those of other keys": lambda q, k, v: in_three_passes(q, k, np.roll(v, 1, axis=0)),
    "queries are exchanged": lambda q, k, v: in_three_passes(q[::-1], k, v),
    "columns are exchanged": lambda q, k, v: in_three_passes(q, k, v)[:, ::-1],
    "results are a thousandth too large": lambda q, k, v: in_three_passes(q, k, v) * 1.001,
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen(fault: str, dtype: str) -> None:
    inputs = drawn(30, 16, 29, dtype)
    assert judged(inputs, in_three_passes(*inputs))
    assert not judged(inputs, FAULTS[fault](*inputs))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_maximum_that_is_not_taken_off_is_seen(dtype: str) -> None:
    """Scores of 1e4, whose exponentials overflow."""
    for inputs in of_trials("scores", dtype):
        with np.errstate(over="ignore", invalid="ignore"):
            scores = scores_of(*inputs[:2])
            plainly = np.exp(scores) @ inputs[2].astype(scores.dtype) / np.exp(scores).sum(axis=1, keepdims=True)
        assert judged(inputs, in_three_passes(*inputs))
        if np.abs(scores).max() > 2000:
            assert not judged(inputs, plainly)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_missing_rescaling_is_seen_where_scores_are_far_apart(dtype: str) -> None:
    seen = 0
    for inputs in of_trials("far-apart", dtype):
        assert judged(inputs, by_blocks(*inputs, block=16))
        seen += not judged(inputs, by_blocks(*inputs, block=16, rescales=False))
    assert seen > 0


@pytest.mark.parametrize("dtype", NARROW)
def test_weights_that_are_rounded_twice_are_seen(dtype: str) -> None:
    """Once before the division, and once after it."""
    inputs = q, k, v = drawn(8, 33, 300, dtype)
    scores = scores_of(q, k)
    weights = rounded(np.exp(scores - scores.max(axis=1, keepdims=True)), q.dtype)
    weights = rounded(weights / weights.sum(axis=1, keepdims=True), q.dtype)
    assert judged(inputs, in_three_passes(q, k, v, narrow_weights=True))
    assert not judged(inputs, weights @ v.astype(weights.dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_only_the_winner_passes_where_the_others_are_lost(dtype: str) -> None:
    for inputs in of_trials("far-apart", dtype):
        right = in_three_passes(*inputs)
        assert judged(inputs, right)
        assert not judged(inputs, np.nextafter(right, right.dtype.type(np.inf)))


def test_scores_of_minus_infinity_weigh_nothing_and_a_query_of_them_alone_has_no_mean() -> None:
    q, k, v = np.ones((2, 3), "float32"), np.ones((4, 3), "float32"), np.arange(12, dtype="float32").reshape(4, 3)
    k[:3, 0] = -np.inf
    q[1] *= np.float32(-np.inf)
    result = np.stack([v[3], np.full(3, np.nan)])
    assert judged([q, k, v], result)
    assert not judged([q, k, v], np.stack([v[3], v[3]]))
    assert not judged([q, k, v], np.full((2, 3), np.nan))


@pytest.mark.parametrize("backend", ["numpy", "python", "cpp"])
def test_no_keys_are_refused_in_one_line(backend: str) -> None:
    q, none = np.ones((2, 3), "float32"), np.ones((0, 3), "float32")
    with pytest.raises(ValueError, match=r"^attention takes n of at least 1: got 0$"):
        pb.attention(q, none, none, backend=backend)
