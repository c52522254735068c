"""The results of a comparison: its rows, as objects and as strict JSON (docs/reference.md, Results)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SCHEMA_VERSION = 1
FAILURES = frozenset({"mismatch", "error", "crashed", "timeout", "impossible"})
"""The statuses that make a comparison exit with 1."""
RAN = frozenset({"ok", "emulated"}) | FAILURES


@dataclass(frozen=True)
class Check:
    """How a result compares with the reference; `error_over_bound` is at most 1 where it passed."""

    passed: bool
    rule: str
    error_over_bound: float | None


@dataclass(frozen=True)
class Duration:
    """Seconds of one phase over all samples; `low` and `high` bound the median at 95%, None with too few."""

    median: float
    low: float | None
    high: float | None
    minimum: float
    samples: int


@dataclass(frozen=True)
class Seconds:
    """The phases of a row, in seconds; None where a phase was not measured."""

    prepare: float | None = None
    upload: float | None = None
    download: float | None = None
    kernel: Duration | None = None
    end_to_end: Duration | None = None


@dataclass(frozen=True)
class Rate:
    """Rates of the kernel alone, from its median time."""

    gflops: float
    gbytes_per_second: float


@dataclass(frozen=True)
class Speedup:
    """How many times as fast as the baseline, from ratios taken inside rounds; above 1 is faster.

    same_shape: False where the row ran at another shape than the baseline, so that rates are compared.
    """

    baseline: str
    speedup: float
    low: float | None
    high: float | None
    same_shape: bool


@dataclass
class Row:
    """One (kernel, backend, target, variant, dtype, shape) of a comparison."""

    kernel: str
    backend: str
    target: str
    variant: str
    dtype: str
    shape: dict[str, int]
    status: str
    reason: str | None = None
    fix: str | None = None
    note: str | None = None
    device: str | None = None
    check: Check | None = None
    seconds: Seconds | None = None
    rate: Rate | None = None
    versus: Speedup | None = None


@dataclass
class Report:
    """A whole comparison."""

    created: str
    package_version: str
    machine: dict[str, Any]
    settings: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    seconds_taken: float | None = None
    interrupted: bool = False

    def exit_code(self) -> int:
        """0 every row that ran agrees; 1 one failed or none ran; 130 interrupted."""
        if self.interrupted:
            return 130
        statuses = [row.status for row in self.rows]
        failed = any(status in FAILURES for status in statuses)
        return int(failed or not any(status in RAN for status in statuses))

    def to_json(self) -> str:
        """The results as strict JSON: null stands for what there is not, never NaN or Infinity."""
        return json.dumps({"schema_version": SCHEMA_VERSION, **asdict(self)}, indent=1, allow_nan=False) + "\n"

    def by_kernel(self) -> Iterator[tuple[str, list[Row]]]:
        """Each kernel with its rows, in the order in which kernels first appear."""
        for kernel in dict.fromkeys(row.kernel for row in self.rows):
            yield kernel, [row for row in self.rows if row.kernel == kernel]


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader sees all of it or what was there before; OSError where that fails.

    A link stays one, and what it points to is written. What is no regular file, a pipe for instance, is
    written to as it is.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
