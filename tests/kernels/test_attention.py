"""What the reference of `attention` promises: keys that show, weights that may be rounded once, and what is refused."""

from __future__ import annotations

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


@pytest.mark.parametrize("dtype", DTYPES)
def test_right_means_of_many_keys_pass(dtype: str) -> None:
    """Of more than the suite has: what rounding adds up to is most there."""
    for seed in range(3):
        q, k, v = drawn(3, 5, 20_000, dtype, seed)
        assert judged([q, k, v], in_three_passes(q, k, v))
        assert judged([q, k, v], in_three_passes(q, k[::-1], v[::-1]))


def test_weights_may_be_divided_by_their_sum_before_they_are_multiplied() -> None:
    """As whoever writes down the softmax first has it. Then even the mean of whole numbers rounds."""
    for n in (3, 67, 509, 4099):
        q, k, v = inputs = drawn(16, 5, n)
        q[::2] = 0
        scores = scores_of(q, k)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        one_by_one = np.add.accumulate(weights[:, :, None] * v, axis=1)[:, -1]
        assert judged(inputs, weights @ v)
        assert judged(inputs, one_by_one)


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
