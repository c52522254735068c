"""Keeps right answers within the budget: a problem's own code computes them, at any pace.

A function of anybody's may have a loop over all elements, which takes minutes at the default shape.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from py_backends.harness import sizing
from py_backends.harness.case import Case
from py_backends.harness.running_row import RunningRow
from py_backends.results.spec import Sizes, Workload

_LONGEST_ESTIMATE = 0.2
"""Seconds that one right answer may take for an estimate."""
_PART, _LEAST = 0.5, 5.0
"""Of the budget, all right answers together may take this part. Each may always take the seconds."""
_FIX = "compute it without a loop over elements, or give a smaller --shape"


def answerable(
    rows: Sequence[RunningRow], case_of: Callable[[RunningRow, Sizes], Case], budget: float, *, shorten: bool
) -> list[RunningRow]:
    """The rows whose right answers take no longer than they may, some of them at a smaller shape.

    case_of: the case of a row at other sizes.
    budget: seconds of the whole comparison.
    shorten: whether rows may have a smaller shape. Each that has, or is left out, says so.
    """
    estimates: dict[Workload, float] = {}
    for row in rows:
        if row.workload not in estimates:
            estimates[row.workload] = _estimate(row, case_of)
    longest = max(_LEAST, _PART * budget / max(1, len(estimates)))
    return [row for row in rows if _fits(row, estimates[row.workload], longest, shorten=shorten)]


def _estimate(row: RunningRow, case_of: Callable[[RunningRow, Sizes], Case]) -> float:
    """Seconds of the right answer; 0 where there is none, of which the row tells when it is checked."""
    with contextlib.suppress(Exception):
        return sizing.estimate(
            row.problem,
            row.spec.sizes,
            lambda sizes: case_of(row, sizes).seconds_of_answer(),
            _LONGEST_ESTIMATE,
        )
    return 0.0


def _fits(row: RunningRow, seconds: float, longest: float, *, shorten: bool) -> bool:
    if seconds <= longest:
        return True
    wanted, time = "x".join(map(str, row.spec.sizes)), sizing.in_words(seconds)
    smaller = sizing.affordable(row.problem, row.spec.sizes, seconds, longest) if shorten else None
    if smaller is None:
        row.reason, row.fix = f"its right answer at {wanted} would take {time}", _FIX
        return False
    row.sizes = smaller
    row.notes.append(f"shortened from {wanted}, whose right answer would take {time}: {_FIX}")
    return True
