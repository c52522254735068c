"""Judges a result by the rules of agreement (docs/reference.md, What "the same output" means)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from py_backends.contract import Array, Problem, Reference
from py_backends.errors import WrongRequest
from py_backends.results.report import Check
from py_backends.system.bits import same_bits

_ALL_DIGITS = 17
"""Of a float64."""
STILL_CHANGING = "its output was still changing after the call"
"""What is wrong where work goes on: an element has another value by the time that it would be told."""
_BLOCK = 2**16
"""Elements that are judged at a time."""


@dataclass(frozen=True)
class Verdict:
    """A check, and a sentence on what is wrong if it did not pass."""

    check: Check
    reason: str | None

    @classmethod
    def wrong(cls, rule: str, reason: str, error_over_bound: float | None = None) -> Verdict:
        return cls(Check(False, rule, error_over_bound), reason)


def references_of(
    problem: Problem, inputs: Sequence[Array], sizes: Sequence[Any], dtype: np.dtype[Any]
) -> tuple[Reference, ...]:
    """The right answers of a problem in a run in a dtype, one for each output.

    Raises WrongRequest, which says what is wrong, if one breaks the contract. A reference judges every backend, so it
    has to pass its own check: rounded to the output's dtype, it must lie within its own bound.
    """
    judge: Callable[..., Any] = problem.reference
    answer = judge(inputs, *problem.rounded(sizes, dtype)[len(problem.dimensions) :])
    found = answer if isinstance(answer, tuple) else (answer,)
    if len(found) != problem.outputs:
        raise WrongRequest(f"it has {problem.outputs} outputs, and its reference gives {len(found)}")
    outputs = slice(len(problem.inputs), None)
    shapes, dtypes = problem.shapes(sizes)[outputs], problem.array_dtypes(dtype)[outputs]
    for reference, shape, of_output in zip(found, shapes, dtypes, strict=True):
        _check_reference(reference, problem.rule, tuple(shape), of_output)
    return found


def _check_reference(reference: object, rule: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if not isinstance(reference, Reference):
        raise WrongRequest(f"its reference has the type {type(reference).__name__}, not Reference")
    if rule == "bitwise" and reference.bound is not None:
        raise WrongRequest("its rule is bitwise, but its reference has a bound")
    if rule == "componentwise" and reference.bound is None and dtype.kind != "i":
        raise WrongRequest("its rule is componentwise, but its reference has no bound")
    for name in ("value", "bound", "overflow"):
        array = getattr(reference, name)
        if array is not None and getattr(array, "shape", None) != shape:
            kind = getattr(array, "shape", type(array).__name__)
            raise WrongRequest(f"the {name} of its reference has the shape {kind}, but its output has {shape}")
    _check_answer(reference, dtype)


def _check_answer(reference: Reference, dtype: np.dtype[Any]) -> None:
    if reference.bound is None:
        if reference.value.dtype != dtype:
            raise WrongRequest(f"its reference has the dtype {reference.value.dtype}, but its result has {dtype}")
        return
    finite = np.isfinite(reference.value)
    unbounded = np.isposinf(reference.bound)
    if reference.overflow is not None:
        unbounded &= ~reference.overflow  # where the result may overflow, its bound may too
    if not ((reference.bound >= 0) & ~unbounded)[finite].all():
        raise WrongRequest("the bound of its reference is negative or not finite where its value is finite")
    with np.errstate(over="ignore"):
        rounded = check_output(np.asarray(reference.value).astype(dtype), reference, "componentwise")
    if rounded.reason:
        raise WrongRequest(f"its reference, rounded to {dtype}, is not within its own bound: {rounded.reason}")


def check_outputs(outputs: Sequence[Array], references: Sequence[Reference], rule: str) -> Verdict:
    """Compare all outputs with their references: the verdict on the first that is wrong, else the largest error."""
    found = [check_output(*each, rule) for each in zip(outputs, references, strict=True)]
    for at, verdict in enumerate(found, 1):
        if verdict.reason is not None:
            return verdict if len(found) == 1 else replace(verdict, reason=f"output {at}: {verdict.reason}")
    return max(found, key=lambda verdict: verdict.check.error_over_bound or 0.0)


def check_output(output: Array, reference: Reference, rule: str) -> Verdict:
    """Compare `output` with the reference of the same shape, element by element.

    Without a bound every bit must agree, and a NaN must stand where the reference has one. With a bound, an element is
    wrong if `not (error <= bound)`; so a NaN error is wrong. If the reference is NaN or infinite, the output must be
    the same. If the result may overflow, infinity and NaN pass. So does a number where the reference has overflowed
    itself, which is of the same format.
    """
    if output.dtype != reference.value.dtype and reference.bound is None:
        raise TypeError(f"an output of {output.dtype} cannot be judged by a reference of {reference.value.dtype}")
    right, error_over_bound = _judged(output, reference)
    if right.all():
        return Verdict(Check(True, rule, error_over_bound), None)
    exact = reference.bound is None
    reason = _describe(output, reference, right)
    if (_judged(output, reference)[0] != right).any():
        reason = STILL_CHANGING
    return Verdict.wrong(rule, reason, None if exact or not np.isfinite(error_over_bound) else error_over_bound)


def _judged(output: Array, reference: Reference) -> tuple[Array, float]:
    """Which elements are right, and the largest error over its bound; 0 without one."""
    if reference.bound is None:
        return same_bits(output, reference.value), 0.0
    return _within_bound(output, reference.value, reference.bound, reference.overflow)


def _within_bound(output: Array, value: Array, bound: Array, overflow: Array | None) -> tuple[Array, float]:
    """Which elements are right, and the largest error over its bound.

    By blocks, whose temporary arrays stay in the cache. New memory for whole ones took longer than the arithmetic.
    """
    flat = [each.reshape(-1) for each in (output, value, bound)]
    may_overflow = None if overflow is None else overflow.reshape(-1)
    right, largest = np.empty(output.size, bool), 0.0
    for begin in range(0, output.size, _BLOCK):
        block = slice(begin, begin + _BLOCK)
        excused = None if may_overflow is None else may_overflow[block]
        right[block], ratio = _block_within_bound(flat[0][block], flat[1][block], flat[2][block], excused)
        largest = float(np.maximum(largest, ratio))  # a NaN stays
    return right.reshape(output.shape), largest


def _block_within_bound(output: Array, value: Array, bound: Array, overflow: Array | None) -> tuple[Array, float]:
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(output.astype(np.float64) - value)
        ratio = np.divide(error, bound, out=np.where(error == 0, 0.0, np.inf), where=bound > 0)
    right: Array = error <= bound
    judged = np.isfinite(value)
    if not judged.all():
        with np.errstate(invalid="ignore"):  # a signalling NaN of bfloat16
            same = (np.isnan(value) & np.isnan(output)) | (output == value)
        right = np.where(judged, right, same)
    if overflow is not None and overflow.any():
        excused = overflow & ~np.isfinite(output)
        if output.dtype == value.dtype:  # the reference may overflow too, where a result in another order does not
            excused |= overflow & ~judged
        right |= excused
        judged = judged & ~excused
    counted = ratio[judged]
    return right, float(counted.max()) if counted.size else 0.0


def _describe(output: Array, reference: Reference, right: Array) -> str:
    within = "" if reference.bound is None else f", within {reference.bound[~right][0]:.2g}"
    return f"{first_wrong(right, output, reference.value)}{within}"


def first_wrong(right: Array, output: Array, value: Array, digits: int = 9) -> str:
    """A sentence: how many elements of an output are wrong, and the first wrong one beside the right value.

    right: which elements are right, in the shape of both arrays. At least one is wrong.
    digits: of both values; more where these are the same.
    """
    wrong = ~right
    place = ", ".join(map(str, np.argwhere(wrong)[0].tolist()))
    pair = output[wrong][0], value[wrong][0]
    found, expected = (f"{each:.{digits}g}" for each in pair)
    if found == expected:
        found, expected = (f"{each:.{_ALL_DIGITS}g}" for each in pair)
    return (
        f"{np.count_nonzero(wrong)} of {wrong.size} elements are wrong, the first at [{place}]: "
        f"{found} where {expected} is right"
    )
