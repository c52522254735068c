"""Judges a result by the rules of agreement (docs/reference.md, What "the same output" means)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from py_backends._contract import Array, Reference
from py_backends.harness.memory import same_bits
from py_backends.harness.results import Check


@dataclass(frozen=True)
class Verdict:
    """A check, and where it did not pass a sentence on what is wrong."""

    check: Check
    reason: str | None

    @classmethod
    def wrong(cls, rule: str, reason: str, error_over_bound: float | None = None) -> Verdict:
        return cls(Check(False, rule, error_over_bound), reason)


def judge(output: Array, reference: Reference, rule: str) -> Verdict:
    """Compare `output` with the reference of the same shape, element by element.

    Without a bound every bit must agree, NaN by place. With one, `not (error <= bound)` is wrong, so
    that a NaN error is; where the reference is NaN or infinite the output must be the same, and where
    it may overflow, infinity and NaN pass.
    """
    if output.dtype != reference.value.dtype and reference.bound is None:
        raise TypeError(f"an output of {output.dtype} cannot be judged by a reference of {reference.value.dtype}")
    if reference.bound is None:
        right, error_over_bound = same_bits(output, reference.value), 0.0
    else:
        right, error_over_bound = _within_bound(output, reference.value, reference.bound, reference.overflow)
    if right.all():
        return Verdict(Check(True, rule, error_over_bound), None)
    exact = reference.bound is None
    reason = _describe(output, reference, right)
    return Verdict.wrong(rule, reason, None if exact or not np.isfinite(error_over_bound) else error_over_bound)


def _within_bound(output: Array, value: Array, bound: Array, overflow: Array | None) -> tuple[Array, float]:
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(output.astype(np.float64) - value)
        ratio = error / bound
    right: Array = error <= bound
    judged = np.isfinite(value)
    if not judged.all():
        same = (np.isnan(value) & np.isnan(output)) | (output == value)
        right = np.where(judged, right, same)
    if overflow is not None and overflow.any():
        excused = overflow & ~(np.isfinite(output) & judged)  # a float64 reference may overflow as well
        right |= excused
        judged = judged & ~excused
    counted = ratio[judged]
    return right, float(counted.max()) if counted.size else 0.0


def _describe(output: Array, reference: Reference, right: Array) -> str:
    wrong = np.flatnonzero(~right)
    first = np.unravel_index(wrong[0], right.shape)
    place = ", ".join(str(int(index)) for index in first)
    within = "" if reference.bound is None else f", within {reference.bound[first]:.2g}"
    return (
        f"{wrong.size} of {right.size} elements are wrong, the first at [{place}]: "
        f"{output[first]:.9g} where {reference.value[first]:.9g} is right{within}"
    )
