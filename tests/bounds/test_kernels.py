"""The project's kernels, written plainly: their bounds beside the proven ones, and beside errors of right kernels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from written_plainly import KERNELS

from py_backends import registry
from py_backends.bounds import bounded
from py_backends.contract import Array, Problem, Reference
from py_backends.results.check import _check_answer, check_output, references_of

SIZES = {
    "vecadd": (1003,),
    "matmul": (41, 39, 57),
    "dot": (5003,),
    "transpose": (19, 15),
    "heat": (21, 19, 16),
    "nbody": (21, 31),
    "attention": (33, 16, 29),
}
WIDEST = {"dot": 30.0, "nbody": 3.0, "attention": 4.0}
"""How wide a bound may be beside the proven one, in the median; others about 1. That of dot is probabilistic."""


def given(problem: Problem, dtype: np.dtype[Any], kind: str) -> list[Array]:
    generator = np.random.default_rng(3)
    sizes = SIZES[problem.name]
    if kind == "drawn":
        return [np.asarray(each).astype(dtype) for each in problem.draw(sizes, dtype, generator)]
    shapes = problem.shapes(sizes)[: len(problem.inputs)]
    arrays = [generator.standard_normal(shape) for shape in shapes]
    if kind == "whole":
        arrays = [np.rint(4 * each) for each in arrays]
    if problem.name == "nbody":
        arrays[2] = np.abs(arrays[2])
    return [each.astype(dtype) for each in arrays]


def both(name: str, dtype: str, kind: str) -> tuple[list[Array], Reference, Reference]:
    """The inputs, the reference that comes by itself, and the proven one."""
    problem, of_run = registry.problem(name), np.dtype(dtype)
    inputs, sizes = given(problem, of_run, kind), problem.whole_sizes(SIZES[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = bounded(
            KERNELS[name],
            *inputs,
            numbers=sizes[len(problem.dimensions) :],
            sums=problem.sum_dtype(of_run),
            results=[problem.result_dtype(of_run)],
        )
    (proven,) = references_of(problem, inputs, sizes, of_run)
    return inputs, found, proven


@pytest.mark.parametrize("kind", ["drawn", "random", "whole"])
@pytest.mark.parametrize(("name", "dtype"), [(name, each) for name in KERNELS for each in ("float32", "float64")])
def test_beside_the_proven_bound(name: str, dtype: str, kind: str) -> None:
    _, found, proven = both(name, dtype, kind)
    _check_answer(found, np.dtype(dtype))
    assert found.bound is not None
    if proven.bound is None:
        assert not found.bound.any()
        assert (found.value.astype(dtype) == proven.value).all()
        return
    assert (np.abs(found.value - proven.value) <= 1e-3 * np.minimum(found.bound, proven.bound) + 1e-12).all()
    counted = (proven.bound > 0) & (found.bound > 0)
    if counted.any():
        ratio = float(np.median(found.bound[counted] / proven.bound[counted]))
        assert (0 if kind == "whole" else 0.9) <= ratio <= WIDEST.get(name, 1.05)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_narrow_formats(name: str, dtype: str) -> None:
    if dtype not in registry.problem(name).dtypes:
        return
    _, found, proven = both(name, dtype, "drawn")
    _check_answer(found, registry.problem(name).result_dtype(np.dtype(dtype)))
    if found.bound is None:
        assert (found.value == proven.value).all()
    else:
        assert (np.abs(found.value.astype(float) - proven.value.astype(float)) <= 1e-3 * found.bound).all()
    if name in {"matmul", "attention"} and found.bound is not None and proven.bound is not None:
        counted = proven.bound > 0
        assert 0.8 <= float(np.median(found.bound[counted] / proven.bound[counted])) <= 2


def orders(terms: Array) -> Iterator[Any]:
    """A sum over the first dimension in the format of its terms: one by one, backwards, and by lanes."""
    for each in (terms, terms[::-1], np.random.default_rng(1).permutation(terms)):
        yield each.cumsum(axis=0, dtype=terms.dtype)[-1]
        lanes = each[: len(each) // 4 * 4].reshape(-1, 4, *terms.shape[1:]).cumsum(axis=0, dtype=terms.dtype)[-1]
        yield each[len(each) // 4 * 4 :].sum(axis=0) + ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3]))


def results(name: str, inputs: list[Array]) -> Iterator[Any]:
    """What right kernels give."""
    if name in {"matmul", "dot"}:
        a, b = inputs
        yield from orders(a.T[:, :, None] * b[:, None, :] if name == "matmul" else a * b)
    elif name == "nbody":
        at, position, mass = inputs
        d = position[:, None] - at[None]
        square = (d[..., 2] * d[..., 2] + d[..., 1] * d[..., 1]) + d[..., 0] * d[..., 0] + d.dtype.type(2.0**-10)
        root = 1 / np.sqrt(square)
        yield from orders((mass[:, None] * (root * root * root))[..., None] * d)
    elif name == "attention":
        q, k, v = inputs
        scores = q @ k.T * (1 / np.sqrt(q.dtype.type(q.shape[1])))
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        share = weights / weights.sum(axis=1, keepdims=True)
        yield from orders(share.T[:, :, None] * v[:, None, :])
    else:
        yield KERNELS[name](*inputs, *((16,) if name == "heat" else ()))


@pytest.mark.parametrize("kind", ["random", "whole"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", KERNELS)
def test_right_kernels_lie_within(name: str, dtype: str, kind: str) -> None:
    inputs, found, _ = both(name, dtype, kind)
    for result in results(name, inputs):
        assert check_output(np.asarray(result), found, "componentwise").reason is None
