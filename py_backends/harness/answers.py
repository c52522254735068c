"""Keeps right answers within the budget: a problem's own code computes them, at any pace.

A function of anybody's may have a loop over all elements, which takes minutes at the default shape.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from py_backends import registry
from py_backends.harness import sizing
from py_backends.harness.case import Case
from py_backends.harness.running_row import RunningRow
from py_backends.results.spec import Sizes, Workload

_LONGEST_ESTIMATE = 0.2
"""Seconds of a right answer from which on no larger shape is tried for an estimate."""
_PART, _LEAST = 0.5, 5.0
"""Of the budget, all right answers together may take this part. Each may always take the seconds."""
TOO_LONG = "whose right answer would take"
"""In the note of a row that was shortened for this."""
_FIX = "compute it without a loop over elements, or give a smaller --shape"


def answerable(
    rows: Sequence[RunningRow], case_of: Callable[[RunningRow, Sizes], Case], budget: float, *, shorten: bool
) -> list[RunningRow]:
    """The rows whose right answers take no longer than they may, some of them at a smaller shape.

    Those of the project's own kernels are quick.

    case_of: the case of a row at other sizes.
    budget: seconds of the whole comparison.
    shorten: whether rows may have a smaller shape. Each that has, or is left out, says so.
    """
    estimates: dict[Workload, float] = {}
    for row in rows:
        if row.workload not in estimates:
            own = registry.kernel_plugin(row.spec.kernel) is None
            estimates[row.workload] = 0.0 if own else _estimate(row, case_of)
    longest = max(_LEAST, sizing.fair_cap(list(estimates.values()), _PART * budget))
    return [row for row in rows if _fits(row, estimates[row.workload], longest, shorten=shorten)]


def _estimate(row: RunningRow, case_of: Callable[[RunningRow, Sizes], Case]) -> float:
    """Seconds of the right answer; 0 where it fails, of which the row tells when it is checked.

    From the last two of some growing shapes: what a function takes at every shape does not grow. So nothing is known
    where there is one shape alone.
    """
    work, seconds = [0.0], [0.0]
    with contextlib.suppress(Exception):
        shapes = list(sizing.growing(row.problem, row.spec.sizes))
        for number, sizes in enumerate(shapes if len(shapes) > 1 else [], 1):
            work.append(row.problem.work(sizes))
            seconds.append(sizing.least(case_of(row, sizes).seconds_of_answer))
            if seconds[-1] > _LONGEST_ESTIMATE and number > 1:
                break
        if len(work) > 2:
            pace = max(0.0, seconds[-1] - seconds[-2]) / (work[-1] - work[-2])
            return seconds[-1] + pace * (row.problem.work(row.spec.sizes) - work[-1])
    return 0.0


def _fits(row: RunningRow, seconds: float, longest: float, *, shorten: bool) -> bool:
    if seconds <= longest:
        return True
    wanted, time = "x".join(map(str, row.spec.sizes)), sizing.in_words(seconds)
    smaller = _smaller(row, seconds, longest) if shorten else None
    if smaller is None:
        row.reason, row.fix = f"its right answer at {wanted} would take {time}", _FIX
        return False
    row.sizes = smaller
    row.notes.append(f"shortened from {wanted}, {TOO_LONG} {time}: {_FIX}")
    return True


def _smaller(row: RunningRow, seconds: float, longest: float) -> Sizes | None:
    """The shape whose right answer takes so long; None where the problem takes none of those that are tried."""
    with contextlib.suppress(ValueError):
        return sizing.affordable(row.problem, row.spec.sizes, seconds, longest)
    return None
