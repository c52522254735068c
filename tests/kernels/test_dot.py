"""What the check of `dot` sees: faults that a sum of millions of terms would hide, and right results in any order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from py_backends import registry
from py_backends.contract import Array
from py_backends.results.check import check_output

DOT = registry.problem("dot")
LONG = 4_000_037
"""Elements of `compare`'s own vectors."""
FORMATS = ("float32", "float16", "bfloat16", "float64", "int8")

Products = Array
"""What every right kernel computes first: exact products, in float64."""


def drawn(dtype: str, n: int = LONG, seed: int = 1) -> list[Array]:
    """The inputs of a comparison."""
    return [np.asarray(array).astype(dtype) for array in DOT.draw((n,), np.dtype(dtype), np.random.default_rng(seed))]


def judged(inputs: list[Array], result: Any) -> bool:
    """Whether a result passes."""
    output = np.asarray(result).astype(DOT.result_dtype(inputs[0].dtype)).reshape(())
    return bool(check_output(output, DOT.reference(inputs), DOT.rule).check.passed)


def total(a: Array, b: Array) -> Any:
    """The right sum, whose terms are whole numbers: modulo 2^32 for int8."""
    terms = a.astype(np.float64) * b.astype(np.float64)
    return np.int64(terms.sum()).astype(np.int32) if a.dtype == np.int8 else terms.sum()


def swapped_neighbours(a: Array) -> Array:
    """Elements in pairs, each pair the wrong way round."""
    turned = a.copy()
    whole = len(a) // 2 * 2
    turned[:whole] = a[:whole].reshape(-1, 2)[:, ::-1].reshape(-1)
    return turned


FAULTS: dict[str, Callable[[Array, Array], Any]] = {
    "the first is dropped": lambda a, b: total(a[1:], b[1:]),
    "one in the middle is dropped": lambda a, b: total(np.delete(a, LONG // 2), np.delete(b, LONG // 2)),
    "one is doubled": lambda a, b: total(np.append(a, a[12_345]), np.append(b, b[12_345])),
    "the last is dropped": lambda a, b: total(a[:-1], b[:-1]),
    "the tail after whole vectors is dropped": lambda a, b: total(a[: LONG // 16 * 16], b[: LONG // 16 * 16]),
    "the tail is added twice": lambda a, b: total(np.append(a, a[-5:]), np.append(b, b[-5:])),
    "neighbours are swapped": lambda a, b: total(swapped_neighbours(a), b),
    "one of the vectors begins an element later": lambda a, b: total(a[:-1], b[1:]),
}


@pytest.mark.parametrize("dtype", FORMATS)
def test_the_inputs_of_a_comparison_have_one_right_sum(dtype: str) -> None:
    """In every order, and with sums of 16 or of 4096 parts: nothing is rounded."""
    a, b = drawn(dtype)
    assert judged([a, b], total(a, b))
    reference = DOT.reference([a, b])
    assert reference.bound == 0
    if dtype == "int8":
        return
    sums = DOT.sum_dtype(a.dtype).type
    terms = a.astype(sums) * b.astype(sums)
    for lanes in (16, 4096):
        parts = np.zeros(lanes, sums)
        for part in np.array_split(terms, len(terms) // lanes + 1)[:: -1 if lanes > 16 else 1]:
            parts[: len(part)] += part
        forwards, backwards = parts.cumsum(dtype=sums)[-1], parts[::-1].cumsum(dtype=sums)[-1]
        assert forwards == backwards == reference.value


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("fault", FAULTS)
def test_one_wrong_element_of_millions_is_seen(dtype: str, fault: str) -> None:
    """A product of int8 may be 0 modulo 2^32 by chance: of several draws, one shows it."""
    draws = 3 if dtype == "int8" else 1
    assert not all(judged(drawn(dtype, seed=seed), FAULTS[fault](*drawn(dtype, seed=seed))) for seed in range(draws))


@pytest.mark.parametrize(
    ("dtype", "narrower"),
    [
        ("float32", "bfloat16"),
        ("float32", "float16"),
        ("float16", "float16"),
        ("bfloat16", "bfloat16"),
        ("float64", "float32"),
    ],
)
def test_a_narrower_sum_is_seen(dtype: str, narrower: str) -> None:
    """In 16 lanes, each of which rounds to the narrower format; infinity of float16 is no sum either."""
    a, b = drawn(dtype)
    terms, lanes = a.astype(np.float64) * b.astype(np.float64), np.zeros(16, narrower)
    for row in terms[: LONG // 16 * 16].reshape(-1, 16)[:: 1 if narrower == "float32" else 37]:
        lanes = (lanes.astype(np.float64) + row).astype(narrower)
    assert not judged([a, b], lanes.astype(np.float64).sum())


@pytest.mark.parametrize(
    "n", [7_500_000, *(pytest.param(n, marks=pytest.mark.nightly) for n in (2**25 - 1, 2**25 + 1, 2**26))]
)
def test_longer_vectors_have_one_right_sum_too(n: int) -> None:
    """Beyond 2^25 elements, of a class of places; another seed has another class."""
    inputs = drawn("float32", n)
    assert DOT.reference(inputs).bound == 0
    a, b = inputs
    at = np.flatnonzero(a * b)
    assert len(at) >= min(n, 2**24 - 1)
    assert not judged(inputs, total(np.delete(a, at[-1]), np.delete(b, at[-1])))


def test_random_numbers_are_held_to_less_than_the_worst_case() -> None:
    """Of mean zero: by the root of their number. Positive ones get the worst case, which a sum one by one may need."""
    generator = np.random.default_rng(5)
    a, b = generator.standard_normal((2, 2**20)).astype(np.float32)
    worst = 2.0**-24 * 2**20 * np.abs(a.astype(float) * b).sum()
    assert DOT.reference([a, b]).bound == pytest.approx(6 * 2**10 / 2**20 * worst, rel=1e-3)
    assert DOT.reference([np.abs(a), np.abs(b)]).bound == pytest.approx(worst, rel=1e-3)
    one_by_one = np.float32(np.cumsum(np.abs(a * b), dtype=np.float32)[-1])
    assert judged([np.abs(a), np.abs(b)], one_by_one)
