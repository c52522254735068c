"""Times a kernel from its slowest source to its fastest, rung by rung, beside a published ladder of the same ideas.

The rungs are data of the kernel: `Problem.ladder`, or `Problem.steps`. Steps lead from `lecture` to `tuned` with one
idea a rung. All rungs and the baseline are sampled in the same rounds. So the ratio of any two comes from samples that
were taken close to each other. A rung that is too slow for the shape runs at a smaller one, and is compared by its
rate. On request, rungs in narrower number formats are added on top. Every ladder of a run has the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from py_backends import registry
from py_backends.contract import Ladder, Rung
from py_backends.errors import WrongRequest
from py_backends.harness.plan import Plan
from py_backends.harness.request import Request
from py_backends.number_formats import DTYPES
from py_backends.results.grouping import grouped
from py_backends.results.ratios import gflops, judged, row_ratio, speedup
from py_backends.results.report import Report, Row, Speedup
from py_backends.results.roofline import percent_of_peak
from py_backends.results.spec import Sizes, Spec
from py_backends.workers.probe import BackendTarget, timed_targets

_RUNS = 12
"""Runs of every rung, of which some 9 are rounds. The first rung is thousands of times as slow as the last. With few
runs it can have a shape that exceeds the caches."""


@dataclass(frozen=True)
class Step:
    """The measurements of a rung. `rung` is None for the baseline beside the ladder.

    over_first, over_below: the speed-up over the first rung, and over the rung below; None if that was not timed, and
        for the first rung itself.
    percent_of_peak: of the multiply-adds of all threads together, or of what the memory allows if the kernel's rate is
        a bandwidth; None if that is not known.
    """

    rung: Rung | None
    row: Row
    gflops: float
    over_first: Speedup | None
    over_below: Speedup | None
    percent_of_peak: float | None


@dataclass(frozen=True)
class Climb:
    """The measurements of a ladder in one dtype at one shape.

    steps: the rungs that were timed, in the ladder's order.
    missing: the others, each with the reason.
    baselines: the baseline, if it was timed.
    """

    kernel: str
    dtype: str
    shape: dict[str, int]
    ladder: Ladder
    steps: list[Step]
    missing: list[tuple[Rung, str]]
    baselines: list[Step]

    @property
    def together(self) -> float | None:
        """The product of the steps' speed-ups; None if some rung was not timed, or ran at another shape."""
        gains = [step.over_below for step in self.steps[1:]]
        if self.missing or not all(gain and gain.same_shape for gain in gains):
            return None
        return math.prod(gain.speedup for gain in gains if gain)


def plan(
    shapes: Mapping[str, Sequence[Sizes]], dtypes: Sequence[str], *, formats: bool = False, steps: bool = False
) -> Plan:
    """The plan: the rungs of every ladder, each on the first target of its backend, and the baseline.

    shapes: by kernel, as for `compare`. A kernel without an entry has the ladder's own sizes.
    formats: whether the rungs in narrower number formats run too.
    steps: whether the ladders are those from `lecture` to `tuned` (`Problem.steps`).

    Raises WrongRequest for unknown names, impossible sizes, a kernel without a ladder, and a format that not all steps
    have.
    """
    chosen = _chosen(chains() if steps else {kernel: (each,) for kernel, each in ladders().items()}, shapes, steps)
    if steps:
        _check_formats(chosen, dtypes)
    every_sizes = [
        (kernel, each, shapes.get(kernel) or [each.sizes]) for kernel, some in chosen.items() for each in some
    ]
    wanted = {
        (kernel, *text, tuple(at)) for kernel, each, its in every_sizes for at in its for text in _texts(kernel, each)
    }

    def specs(targets: Sequence[BackendTarget]) -> list[Spec]:
        every = [
            each
            for each in request.specs(targets)
            if (each.kernel, each.backend, each.variant, tuple(each.sizes)) in wanted
        ]
        narrow = _narrow_specs(chosen, dtypes, sizes, targets) if formats else []
        return _without_lone_baselines(list(dict.fromkeys([*_first_there(every, targets), *narrow])), targets)

    sizes = {
        kernel: list(dict.fromkeys(tuple(at) for name, _, its in every_sizes if name == kernel for at in its))
        for kernel in chosen
    }
    request = Request(
        kernels=list(chosen),
        backends=sorted({backend for _, backend, _, _ in wanted}),
        variants=sorted({variant for _, _, variant, _ in wanted}),
        dtypes=tuple(dtypes),
        shapes=sizes,
    )
    return Plan.of(request, specs, timed_only=True, runs=_RUNS)


def ladders() -> dict[str, Ladder]:
    """The ladder of each kernel that has one."""
    problems = map(registry.problem, registry.kernel_names())
    return {problem.name: problem.ladder for problem in problems if problem.ladder is not None}


def chains() -> dict[str, tuple[Ladder, ...]]:
    """The steps from `lecture` to `tuned` of each kernel that has them."""
    problems = map(registry.problem, registry.kernel_names())
    return {problem.name: problem.steps for problem in problems if problem.steps}


def _chosen(
    found: Mapping[str, tuple[Ladder, ...]], shapes: Mapping[str, Sequence[Sizes]], steps: bool
) -> Mapping[str, tuple[Ladder, ...]]:
    """The ladders of the kernels in `shapes`; all ladders if it is empty."""
    for kernel in shapes:
        registry.problem(kernel)
        if kernel not in found:
            raise WrongRequest(f"{kernel} has no {'steps' if steps else 'ladder'}: leave out its shape")
    return {kernel: found[kernel] for kernel in shapes} or found


def _check_formats(chosen: Mapping[str, tuple[Ladder, ...]], dtypes: Sequence[str]) -> None:
    for kernel, some in chosen.items():
        for rung in (rung for each in some for rung in each.rungs):
            had = registry.kernel_texts(kernel, rung.backend)[rung.variant].dtypes
            for dtype in dtypes:
                if registry.known(dtype, DTYPES, "dtype") not in had:
                    raise WrongRequest(f"the step {rung.variant} of {kernel} is in {', '.join(had)}, not in {dtype}")


def climbs(report: Report) -> list[Climb]:
    """The ladders with timed rungs in a report, one for each requested dtype and shape.

    Rungs in a narrower format belong to all wider ladders of their shape, and make no ladder of their own.
    """
    groups = grouped((row.spec.on_any_threads.workload, row) for row in report.rows)
    found = ladders()
    made: list[Climb] = []
    for workload, rows in groups.items():
        held = [each for each in chains().get(workload.kernel, ()) if _holds(rows, each)]
        made += [_climb(each, rows, [], report) for each in held]
        if workload.kernel not in found or not _is_of_more(rows, found[workload.kernel], held):
            continue
        ladder = found[workload.kernel]
        beside = {each.dtype: its for each, its in groups.items() if each == workload._replace(dtype=each.dtype)}
        if not (_on_top(ladder, rows) and any(_is_narrower(workload.dtype, dtype) for dtype in beside)):
            narrower = [row for dtype, its in beside.items() if _is_narrower(dtype, workload.dtype) for row in its]
            made.append(_climb(ladder, rows, narrower, report))
    return [climb for climb in made if climb.steps]


def _holds(rows: Sequence[Row], ladder: Ladder) -> bool:
    """Whether every rung of a ladder has a row, timed or not."""
    texts = {(row.backend, row.variant) for row in rows}
    return all((rung.backend, rung.variant) in texts for rung in ladder.rungs)


def _is_of_more(rows: Sequence[Row], ladder: Ladder, chains: Sequence[Ladder]) -> bool:
    """Whether the rows include a rung of a ladder that no chain of steps has. If not, the ladder was not requested."""
    of_chains = {(rung.backend, rung.variant) for each in chains for rung in each.rungs}
    texts = {(row.backend, row.variant) for row in rows} - of_chains
    return not chains or any((rung.backend, rung.variant) in texts for rung in ladder.rungs)


def _is_narrower(dtype: str, other: str) -> bool:
    return np.dtype(dtype).itemsize < np.dtype(other).itemsize


def _on_top(ladder: Ladder, rows: Sequence[Row]) -> bool:
    """Whether all rows belong to rungs in a narrower format."""
    texts = {(rung.backend, rung.variant, rung.dtype) for rung in ladder.formats}
    return all((row.backend, row.variant, row.dtype) in texts for row in rows)


def _climb(ladder: Ladder, rows: Sequence[Row], narrower: Sequence[Row], report: Report) -> Climb:
    """The measurements of a ladder in one format. `narrower`: the rows in narrower formats."""
    rungs = [(rung, _rows_of(rung, ladder, rows)) for rung in ladder.rungs]
    for narrow in reversed(ladder.formats):
        if its := _rows_of(narrow, ladder, narrower):
            same = [at for at, rung in enumerate(ladder.rungs) if rung.backend == narrow.backend]
            rungs.insert(same[-1] + 1 if same else len(ladder.rungs), (narrow, its))
    best = [(rung, _best(its)) for rung, its in rungs]
    timed = [(rung, row) for rung, row in best if row is not None]
    first = timed[0][1] if timed and timed[0][0] is ladder.rungs[0] else None
    pairs = [(above, below) for (_, below), (_, above) in pairwise(timed)]
    over_below = [None, *judged(pairs)]
    steps = [_step(rung, row, first, below, report) for (rung, row), below in zip(timed, over_below, strict=False)]
    beside = [row for name in _baselines() for its in _by_variant(rows, name) if (row := _best(its))]
    return Climb(
        rows[0].kernel,
        rows[0].dtype,
        rows[0].asked,
        ladder,
        steps,
        missing=[(rung, _why_not(its)) for rung, its in rungs if _best(its) is None],
        baselines=[_step(None, row, first, None, report) for row in beside],
    )


def _texts(kernel: str, ladder: Ladder) -> Iterator[tuple[str, str]]:
    """The backends and variants to run for a ladder: its rungs, and the default variant of the baseline."""
    yield from ((rung.backend, rung.variant) for rung in ladder.rungs)
    for name in _baselines():
        yield from ((name, variant) for variant in list(registry.kernel_texts(kernel, name))[:1])


def _baselines() -> list[str]:
    return [name for name in registry.backend_names() if registry.is_baseline(name)]


def _without_lone_baselines(specs: Sequence[Spec], found: Sequence[BackendTarget]) -> list[Spec]:
    """The specs without baselines at workloads whose rungs all lack their device: nothing would be compared."""
    there = timed_targets(found)
    rungs = [each for each in specs if not registry.is_baseline(each.backend)]
    timed = {each.workload for each in rungs if (each.backend, each.target) in there}
    return [each for each in specs if each in rungs or each.workload in timed]


def _first_there(specs: Sequence[Spec], found: Sequence[BackendTarget]) -> list[Spec]:
    """The first available target of each source and format, and the missing targets. One run is enough."""
    there = timed_targets(found)
    first: dict[Spec, Spec] = {}
    for spec in specs:
        if (spec.backend, spec.target) in there:
            first.setdefault(replace(spec, target=""), spec)
    return [each for each in specs if (each.backend, each.target) not in there or each in first.values()]


def _narrow_specs(
    chosen: Mapping[str, tuple[Ladder, ...]],
    dtypes: Sequence[str],
    shapes: Mapping[str, Sequence[Sizes]],
    found: Sequence[BackendTarget],
) -> list[Spec]:
    """The specs of the rungs in narrower formats than some requested dtype, each on one available target."""
    specs: list[Spec] = []
    for kernel, ladder in ((kernel, each) for kernel, some in chosen.items() for each in some):
        for rung in ladder.formats:
            if rung.dtype is None or not any(_is_narrower(rung.dtype, dtype) for dtype in dtypes):
                continue
            sizes = {kernel: shapes[kernel]}
            request = Request([kernel], [rung.backend], variants=[rung.variant], dtypes=[rung.dtype], shapes=sizes)
            mine = [each for each in request.specs(found) if _is_of(rung, ladder, each)]
            specs += _first_there(mine, found)
    return specs


def _is_of(rung: Rung, ladder: Ladder, spec: Spec) -> bool:
    """Whether a spec is that of a rung: its source and target, and its number format if it has one."""
    if (spec.backend, spec.variant) != (rung.backend, rung.variant) or rung.dtype not in (None, spec.dtype):
        return False
    if rung.target is None:
        return rung.dtype is None or spec.target not in {each.target for each in ladder.formats}
    return spec.target == rung.target


def _rows_of(rung: Rung, ladder: Ladder, rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if _is_of(rung, ladder, row.spec)]


def _best(rows: Sequence[Row]) -> Row | None:
    """The fastest of the timed rows with the most threads; None if none was timed."""
    timed = [row for row in rows if row.status == "ok" and gflops(row) > 0]
    return max(timed, key=lambda row: (row.threads or 0, gflops(row)), default=None)


def _by_variant(rows: Sequence[Row], backend: str) -> list[list[Row]]:
    its = [row for row in rows if row.backend == backend]
    return [[row for row in its if row.variant == variant] for variant in dict.fromkeys(row.variant for row in its)]


def _why_not(rows: Sequence[Row]) -> str:
    """The reason why the rung of these rows was not timed."""
    return next((row.reason or row.status for row in rows), "it was not requested")


def _step(rung: Rung | None, row: Row, first: Row | None, over_below: Speedup | None, report: Report) -> Step:
    over_first = None if first is None or first is row else speedup(row, first, row_ratio(row, first), None)
    of_arithmetic = registry.problem(row.kernel).rate == "gflops"
    percent = percent_of_peak(row, report.ceilings) if of_arithmetic else row.percent_of_ceiling
    return Step(rung, row, gflops(row), over_first, over_below, percent)
