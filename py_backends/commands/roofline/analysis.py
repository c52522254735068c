"""What the table and the picture of a roofline say of it: a roof for each level of memory, and the shares of models."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from py_backends.display import units
from py_backends.results.grouping import grouped
from py_backends.results.report import Ceiling
from py_backends.results.roofline import ARITHMETIC, Point, Roofline

DRAM = "DRAM"
_FEW = 2
"""Up to so many kernels and shapes, each source has a line of its own. Of more, a model has one line."""
_MOST_KERNELS = 6
"""Of more kernels and shapes than these, only the largest shape of each kernel is shown."""
_LITTLE, _WHOLE = 0.05, 9.95
"""A smaller share of a roof, in per cent, is not told apart from others; one from the other on has no decimals."""


@dataclass(frozen=True)
class Level:
    """A level of memory, and its highest bandwidth: nothing that lies there can be above this roof.

    name: `L1`, `L2`, `L3` or `DRAM`. Where the results lack the sizes of caches, the bytes of the working set.
    """

    name: str
    ceiling: Ceiling


@dataclass(frozen=True)
class Kernel:
    """One kernel and shape: a column of the shares.

    points: its rows, the nearest to their roofs first.
    """

    title: str
    name: str
    points: list[Point]

    @property
    def typical(self) -> Point:
        """The nearest point at the requested shape. If all ran at smaller ones, that of most bytes."""
        return max(self.points, key=lambda point: (not point.row.requested, _moved(point), point.percent))

    @property
    def sizes(self) -> str:
        """The shape of that point, with a star if it is smaller than requested."""
        row = self.typical.row
        return f"{'*' if row.requested else ''}{units.short_shape(row.shape)}"


def _moved(point: Point) -> int:
    return point.row.work.bytes if point.row.work else 0


@dataclass(frozen=True)
class Shares:
    """Models by kernels: how much of its roof each model reaches at best.

    kernels: by arithmetic intensity, the lowest first.
    bounds: what binds each of them: a level of memory, or arithmetic.
    models: for each name its point for each kernel, or None. Those nearest to their roofs, on the whole, come first.
    """

    kernels: list[Kernel]
    bounds: list[str]
    models: dict[str, list[Point | None]]

    @property
    def many(self) -> bool:
        """Whether there are so many kernels that a line stands for a model, and not for each of its sources."""
        return len(self.kernels) > _FEW

    @property
    def points(self) -> list[Point]:
        """All points that are shown."""
        return [point for line in self.models.values() for point in line if point]

    def nearest(self, kernel: int) -> list[str]:
        """The names of those that are nearest to its roof, more than one if their shares read alike."""
        found = {name: point for name, line in self.models.items() if (point := line[kernel])}
        best = max(found.values(), key=lambda point: point.percent)
        return [name for name, point in found.items() if share(point) == share(best)]


def shares(roofline: Roofline, machine: Mapping[str, Any]) -> Shares:
    """The shares of one dtype's rows. Of many shapes, only the largest of each kernel counts."""
    chosen = _chosen(list(groups(roofline.points)))
    names = [title.split()[0] for title, _ in chosen]
    kernels = sorted(
        (
            Kernel(
                title=" ".join(title.split()),
                name=name if names.count(name) == 1 else f"{name} {units.short_shape(points[0].row.asked)}",
                points=points,
            )
            for (title, points), name in zip(chosen, names, strict=True)
        ),
        key=lambda kernel: kernel.typical.intensity,
    )
    return Shares(
        kernels,
        [_bound(kernel.typical, machine, roofline.from_memory) for kernel in kernels],
        _models(kernels, source if len(kernels) <= _FEW else _model),
    )


def source(point: Point) -> str:
    """The backend, target and variant of a point."""
    return f"{point.row.backend} {point.row.target} {point.row.variant}"


def groups(points: Sequence[Point]) -> Iterator[tuple[str, list[Point]]]:
    """The points by kernel, dtype and requested shape. In each group, those nearest to the roof come first."""
    found = grouped((point.row.spec.on_any_threads.workload.title, point) for point in points)
    for title, group in found.items():
        yield title, sorted(group, key=lambda point: -point.percent)


def levels(roofline: Roofline, machine: Mapping[str, Any]) -> list[Level]:
    """A roof for each level of memory, the highest first."""
    found: dict[str, Ceiling] = {}
    for each in roofline.bandwidths:  # the highest first
        found.setdefault(_named(each, machine, roofline.from_memory), each)
    return [Level(name, each) for name, each in found.items()]


def level(ceiling: Ceiling, machine: Mapping[str, Any], from_memory: Collection[int] = ()) -> str:
    """The level that holds a working set: the first cache that is as large, or DRAM.

    Empty if the results lack the caches' sizes. `from_memory` is that of `Roofline`.
    """
    if ceiling.working_set_bytes in from_memory:
        return DRAM
    caches = machine.get("cache_bytes")
    if not caches:
        return ""
    for name, size in caches.items():
        # The first two levels belong to one core, where each thread has its part.
        together = size * (ceiling.threads or 1) if name in {"L1", "L2"} else size
        if (ceiling.working_set_bytes or 0) <= together:
            return str(name)
    return DRAM


def share(point: Point | None) -> str:
    """The share of its roof in per cent, without the sign. A hyphen where there is none."""
    if point is None:
        return "-"
    if point.percent < _LITTLE:
        return "<0.1"
    return f"{point.percent:.0f}" if point.percent >= _WHOLE else f"{point.percent:.1f}"


def _named(ceiling: Ceiling, machine: Mapping[str, Any], from_memory: Collection[int]) -> str:
    return level(ceiling, machine, from_memory) or units.size(ceiling.working_set_bytes or 0)


def _bound(point: Point, machine: Mapping[str, Any], from_memory: Collection[int]) -> str:
    return point.bound if point.bound == ARITHMETIC else _named(point.bandwidth, machine, from_memory)


def _chosen(all_groups: list[tuple[str, list[Point]]]) -> list[tuple[str, list[Point]]]:
    """All groups, or of many only those of the largest shape of each kernel."""
    if len(all_groups) <= _MOST_KERNELS:
        return all_groups
    largest: dict[str, tuple[str, list[Point]]] = {}
    for group in all_groups:
        kernel = group[1][0].row.kernel
        largest[kernel] = max(largest.get(kernel, group), group, key=lambda each: _asked_work(each[1]))
    return list(largest.values())


def _asked_work(points: Sequence[Point]) -> int:
    return prod(size for size in points[0].row.asked.values() if isinstance(size, int))


def _model(point: Point) -> str:
    return point.row.backend


def _models(kernels: Sequence[Kernel], name: Callable[[Point], str]) -> dict[str, list[Point | None]]:
    found: dict[str, list[Point | None]] = {}
    for at, kernel in enumerate(kernels):
        for point in kernel.points:  # the nearest first: it is the one that stays
            line = found.setdefault(name(point), [None] * len(kernels))
            line[at] = line[at] or point
    # A model without a kernel counts as nothing there, so that one of a single kernel is not the first of all.
    return dict(sorted(found.items(), key=lambda model: -sum(each.percent for each in model[1] if each)))
