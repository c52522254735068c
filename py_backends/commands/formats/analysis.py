"""Number formats: the speed of every backend in each, relative to its own float32, and its error.

All formats of a backend are sampled in the same rounds. The error compares a result with the float64 result of the
unrounded inputs. So it shows the price of each halving of the bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from py_backends.results.grouping import grouped
from py_backends.results.ratios import rate, with_verdicts
from py_backends.results.report import Report, Row, Speedup
from py_backends.results.roofline import percent_of_peak

BASIS = "float32"
"""The format that others are compared with."""


@dataclass(frozen=True)
class Choice:
    """The measurements of a backend in one number format.

    over_float32: the speed-up over the same backend in float32; None for float32 itself, and without such a row.
    percent_of_peak: of the multiply-adds in its own format; None if that peak is not known.
    """

    row: Row
    over_float32: Speedup | None
    percent_of_peak: float | None

    @property
    def bytes(self) -> int:
        """The fewest that one run has to move."""
        assert self.row.work, "it was timed"
        return self.row.work.bytes

    @property
    def relative_error(self) -> float | None:
        """The error against float64; None if it was not measured."""
        return self.row.check.relative_error if self.row.check else None


def choices(report: Report) -> dict[str, list[Choice]]:
    """The timed rows by kernel and requested shape, with the formats of each backend together.

    The backend with the highest rate in any format comes first. Its formats are sorted by bits, the most first.
    """
    timed = (row for row in report.rows if row.status == "ok" and rate(row))
    groups = grouped(((row.kernel, tuple(row.asked.values())), row) for row in timed)
    return {
        f"{kernel}  {' x '.join(map(str, sizes))}": _ordered(rows, report) for (kernel, sizes), rows in groups.items()
    }


def _ordered(rows: Sequence[Row], report: Report) -> list[Choice]:
    in_float32 = {_where(row): row for row in reversed(rows) if row.dtype == BASIS}  # the first target's remains
    in_float32 |= {_who(row): row for row in rows if row.dtype == BASIS}
    own = {id(row): in_float32.get(_who(row), in_float32.get(_where(row))) for row in rows if row.dtype != BASIS}
    pairs = [(row, float32) for row in rows if (float32 := own.get(id(row))) is not None]
    over = {id(row): speedup for (row, _), speedup in zip(pairs, with_verdicts(pairs), strict=True)}
    best: dict[tuple[str, str], float] = {}
    for row in rows:
        best[_who(row)] = max(best.get(_who(row), 0.0), rate(row))
    ordered = sorted(rows, key=lambda row: (-best[_who(row)], _who(row), -_bits(row)))
    return [Choice(row, over.get(id(row)), percent_of_peak(row, report.ceilings)) for row in ordered]


def _who(row: Row) -> tuple[str, str]:
    """A backend and target. The variant is left out: it may differ between formats."""
    return row.backend, row.target


def _where(row: Row) -> tuple[str, str | None]:
    """A backend and device. The target is left out: each target may have other formats."""
    return row.backend, row.device


def _bits(row: Row) -> int:
    return 8 * np.dtype(row.dtype).itemsize
