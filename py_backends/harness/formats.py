"""Number formats: the speed of every backend in each, relative to its own float32, and its error.

All formats of a backend are sampled in the same rounds. The error is that of the result against float64, of inputs as
they were before they were rounded to their format: what a user pays for each halving.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from py_backends import registry
from py_backends.harness.doctor import BackendTarget
from py_backends.harness.plan import Plan, Request
from py_backends.harness.results import Report, Row, Speedup
from py_backends.harness.roofline_points import percent_of_peak
from py_backends.harness.row_ratios import gflops, judged
from py_backends.harness.spec import Sizes, Spec
from py_backends.number_formats import DTYPES

BASIS = "float32"
"""The format that others are compared with."""
_RUNS = 16
"""For which each row must have time: there are many rows, and few of them are alike."""


@dataclass(frozen=True)
class Choice:
    """A backend in one number format, as it was measured.

    bytes: that one run moves at least.
    over_float32: how many times as fast as the same backend in float32; None of that itself, and where there is none.
    percent_of_peak: of the multiply-adds of its own format; None where that peak is not known.
    """

    row: Row
    bytes: int
    over_float32: Speedup | None
    percent_of_peak: float | None

    @property
    def relative_error(self) -> float | None:
        """Against float64; None where it was not measured."""
        return self.row.check.relative_error if self.row.check else None


def plan(
    kernels: Sequence[str] | None,
    shapes: Mapping[str, Sequence[Sizes]],
    backends: Sequence[str] | None = None,
    targets: Sequence[str] | None = None,
    variants: Sequence[str] | None = None,
    dtypes: Sequence[str] = DTYPES,
    *,
    every_target: bool = False,
) -> Plan:
    """What is to run; WrongRequest for unknown names and impossible sizes. The parameters are those of `compare`.

    every_target: whether all of several targets that a backend has for one device run, and not the first alone.
    """
    request = Request(kernels, backends, targets, variants, dtypes, shapes)

    def specs(found: Sequence[BackendTarget]) -> list[Spec]:
        return request.specs(found, every_target=every_target)

    return request.plan(specs, runs=_RUNS)


def choices(report: Report) -> dict[str, list[Choice]]:
    """The timed rows by kernel and requested shape: each backend's formats together.

    The backend that is the fastest in any format comes first, and of its formats the one with the most bits.
    """
    groups: dict[tuple[str, Sizes], list[Row]] = {}
    for row in report.rows:
        if row.status == "ok" and gflops(row):
            groups.setdefault((row.kernel, tuple(row.asked.values())), []).append(row)
    return {
        f"{kernel}  {' x '.join(map(str, sizes))}": _ordered(rows, report) for (kernel, sizes), rows in groups.items()
    }


def _ordered(rows: Sequence[Row], report: Report) -> list[Choice]:
    in_float32 = {_where(row): row for row in reversed(rows) if row.dtype == BASIS}  # the first target's remains
    in_float32 |= {_who(row): row for row in rows if row.dtype == BASIS}
    own = {id(row): in_float32.get(_who(row), in_float32.get(_where(row))) for row in rows if row.dtype != BASIS}
    pairs = [(row, float32) for row in rows if (float32 := own.get(id(row))) is not None]
    over = {id(row): speedup for (row, _), speedup in zip(pairs, judged(pairs), strict=True)}
    best: dict[tuple[str, str], float] = {}
    for row in rows:
        best[_who(row)] = max(best.get(_who(row), 0.0), gflops(row))
    ordered = sorted(rows, key=lambda row: (-best[_who(row)], _who(row), -_bits(row)))
    return [Choice(row, _bytes(row), over.get(id(row)), percent_of_peak(row, report.ceilings)) for row in ordered]


def _who(row: Row) -> tuple[str, str]:
    """A backend and target; one may have a tuned text for one format and the lecture's for another."""
    return row.backend, row.target


def _where(row: Row) -> tuple[str, str | None]:
    """A backend and device, whose targets may each have other formats."""
    return row.backend, row.device


def _bits(row: Row) -> int:
    return 8 * np.dtype(row.dtype).itemsize


def _bytes(row: Row) -> int:
    return registry.problem(row.kernel).bytes(tuple(row.shape.values()), np.dtype(row.dtype))
