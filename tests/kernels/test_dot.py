"""What the reference of `dot` promises: inputs with one right sum, however long, and bounds for all others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from py_backends import registry
from py_backends.contract import Array
from py_backends.results.check import check_output

DOT = registry.problem("dot")
FORMATS = {"float32": 4_000_037, "float16": 250_007, "bfloat16": 250_007, "float64": 250_007, "int8": 250_007}
"""By format, how many elements: millions in the first, and in the others fewer."""


def drawn(dtype: str, n: int) -> list[Array]:
    """The inputs of a comparison."""
    return [np.asarray(array).astype(dtype) for array in DOT.draw((n,), np.dtype(dtype), np.random.default_rng(1))]


def judged(inputs: list[Array], result: Any) -> bool:
    """Whether a result passes."""
    output = np.asarray(result).astype(DOT.result_dtype(inputs[0].dtype)).reshape(())
    return bool(check_output(output, DOT.reference(inputs), DOT.rule).check.passed)


def total(a: Array, b: Array) -> Any:
    """The right sum, whose terms are whole numbers: modulo 2^32 for int8."""
    terms = a.astype(np.float64) * b.astype(np.float64)
    return np.int64(terms.sum()).astype(np.int32) if a.dtype == np.int8 else terms.sum()


@pytest.mark.parametrize("dtype", FORMATS)
def test_the_inputs_of_a_comparison_have_one_right_sum(dtype: str) -> None:
    """In every order, and with sums of 16 or of 4096 parts: nothing is rounded."""
    a, b = drawn(dtype, FORMATS[dtype])
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
