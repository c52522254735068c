"""Splits the time of one call of each timed row into the phases of offloading."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from py_backends.results.grouping import grouped
from py_backends.results.report import Report, Row, Seconds
from py_backends.results.spec import Workload

UPLOAD, LAUNCH, KERNEL, DOWNLOAD, RELEASE = "upload", "launch", "kernel", "download", "release"
PHASES = UPLOAD, LAUNCH, KERNEL, DOWNLOAD, RELEASE
"""The phases of every call, in their order. `launch` is the host's time to launch and wait, beyond the kernel."""
PREPARE, FIRST_LAUNCH = "prepare", "first launch"
ONCE = PREPARE, FIRST_LAUNCH
"""What happens once before all calls. `first launch` includes the compilation."""
REST = "rest"
"""The part of a measured call beyond its phases."""
MOST_LANES = 8
"""The most lanes of one call that are shown."""


class Lane(NamedTuple):
    """The time of one rank during the kernel of a call, in seconds.

    communicating: the part of `kernel` in which it communicates, waiting for others included.
    """

    rank: int
    kernel: float
    communicating: float

    @property
    def computing(self) -> float:
        """The rest of its kernel's time."""
        return max(0.0, self.kernel - self.communicating)


@dataclass(frozen=True)
class Call:
    """One call of a row: the medians of its measured phases, in seconds.

    phases: by the names in `PHASES`. They do not add up to `end_to_end`: `kernel` is the median of repeated launches,
        which find their data in the caches. A call has one launch, right after its upload.
    once: by the names in `ONCE`.
    """

    row: Row
    phases: dict[str, float]
    once: dict[str, float]
    end_to_end: float | None

    @property
    def total(self) -> float:
        """The measured time from upload to release. Without it, the sum of the phases."""
        return sum(self.phases.values()) if self.end_to_end is None else self.end_to_end

    @property
    def rest(self) -> float:
        """The time by which the measured call exceeds the sum of its phases, or 0."""
        return max(0.0, self.total - sum(self.phases.values()))

    @property
    def outside(self) -> float:
        """The part of a call, from 0 to 1, that is not the kernel."""
        return max(0.0, 1 - self.phases[KERNEL] / self.total) if self.total > 0 else 0.0

    @property
    def lanes(self) -> list[Lane]:
        """A lane for each rank. A single rank has none."""
        told = self.row.communication
        if told is None or not len(told.kernel_by_rank) == len(told.seconds_by_rank) > 1:
            return []
        return [Lane(*each) for each in zip(count(), told.kernel_by_rank, told.seconds_by_rank, strict=False)]

    @property
    def some_lanes(self) -> list[Lane]:
        """At most `MOST_LANES` lanes. Of more, an even choice from the slowest to the fastest."""
        if len(self.lanes) <= MOST_LANES:
            return self.lanes
        in_order = sorted(self.lanes, key=lambda lane: -lane.kernel)
        return [in_order[round(at * (len(in_order) - 1) / (MOST_LANES - 1))] for at in range(MOST_LANES)]

    @property
    def shortened(self) -> bool:
        """Whether it ran at a smaller shape than requested."""
        return self.row.requested is not None and self.row.requested != self.row.shape


@dataclass(frozen=True)
class Timeline:
    """The calls of one kernel, dtype, shape and number of threads. The fastest is first, shortened ones are last."""

    asked: Workload
    calls: list[Call]


def timelines(report: Report) -> list[Timeline]:
    """A timeline for each kernel, dtype, requested shape and number of threads; none without a timed row."""
    timed = (_call(row, row.seconds, row.timed.median) for row in report.rows if row.seconds and row.timed)
    return [
        Timeline(asked, sorted(calls, key=lambda call: (call.shortened, call.total)))
        for asked, calls in grouped((call.row.spec.workload, call) for call in timed).items()
    ]


def _call(row: Row, seconds: Seconds, kernel: float) -> Call:
    launch = seconds.clock.median - kernel if seconds.clock else None
    measured = {
        UPLOAD: seconds.upload,
        # These are two medians over the same launches. They may come from different launches.
        LAUNCH: None if launch is None else max(0.0, launch),
        KERNEL: kernel,
        DOWNLOAD: seconds.download,
        RELEASE: seconds.release,
    }
    once = {PREPARE: seconds.prepare, FIRST_LAUNCH: seconds.first_launch}
    whole = seconds.end_to_end
    return Call(row, dict(_known(measured)), dict(_known(once)), whole.median if whole else None)


def _known(seconds: dict[str, float | None]) -> Iterator[tuple[str, float]]:
    yield from ((name, value) for name, value in seconds.items() if value is not None)
