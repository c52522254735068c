"""What outputs hold before a run, so that a kernel is seen which finds a result there and leaves it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from py_backends.contract import Array, Reference

_WRONG = 1 / 8
"""The share of elements that are wrong."""


def leave_nearly_right(
    outputs: Sequence[Array], references: Sequence[Reference], generator: np.random.Generator
) -> None:
    """Fill outputs with the right results, but for elements drawn by lot, at least one, of which the sign is wrong.

    A kernel that looks at some elements to find out whether the work is done already thus finds finite, right ones.
    """
    for output, reference in zip(outputs, references, strict=True):
        right = np.array(reference.value).reshape(-1)
        wrong = generator.random(right.size) < _WRONG
        wrong[generator.integers(right.size, size=1) if right.size else []] = True
        with np.errstate(all="ignore"):  # NaN compares, and numbers too large for a format become infinite
            right[wrong] = np.where(right[wrong] == 0, 1, -right[wrong]).astype(right.dtype)
            output[...] = right.reshape(output.shape).astype(output.dtype)
