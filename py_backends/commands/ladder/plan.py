"""What a ladder runs: every rung of a kernel, from its slowest source to its fastest, and the baseline.

The rungs are data of the kernel: `Problem.ladder`, or `Problem.steps`. Steps lead from `lecture` to `tuned` with one
idea a rung. All rungs and the baseline are sampled in the same rounds. So the ratio of any two comes from samples that
were taken close to each other. A rung that is too slow for the shape runs at a smaller one, and is compared by its
rate. On request, rungs in narrower number formats are added on top. Every ladder of a run has the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from py_backends import registry
from py_backends.contract import Ladder, Rung
from py_backends.errors import WrongRequest
from py_backends.harness.plan import Plan
from py_backends.harness.request import Request
from py_backends.number_formats import DTYPES
from py_backends.results.spec import Sizes, Spec
from py_backends.workers.probe import BackendTarget, timed_targets

_RUNS = 12
"""Runs of every rung, of which some 9 are rounds. The first rung is thousands of times as slow as the last. With few
runs it can have a shape that exceeds the caches."""


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


def _texts(kernel: str, ladder: Ladder) -> Iterator[tuple[str, str]]:
    """The backends and variants to run for a ladder: its rungs, and the default variant of the baseline."""
    yield from ((rung.backend, rung.variant) for rung in ladder.rungs)
    for name in baselines():
        yield from ((name, variant) for variant in list(registry.kernel_texts(kernel, name))[:1])


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
            if rung.dtype is None or not any(is_narrower(rung.dtype, dtype) for dtype in dtypes):
                continue
            sizes = {kernel: shapes[kernel]}
            request = Request([kernel], [rung.backend], variants=[rung.variant], dtypes=[rung.dtype], shapes=sizes)
            mine = [each for each in request.specs(found) if is_of(rung, ladder, each)]
            specs += _first_there(mine, found)
    return specs


def baselines() -> list[str]:
    """The backends beside the ladder."""
    return [name for name in registry.backend_names() if registry.is_baseline(name)]


def is_narrower(dtype: str, other: str) -> bool:
    """Whether a number format has fewer bits than another."""
    return np.dtype(dtype).itemsize < np.dtype(other).itemsize


def is_of(rung: Rung, ladder: Ladder, spec: Spec) -> bool:
    """Whether a spec is that of a rung: its source and target, and its number format if it has one."""
    if (spec.backend, spec.variant) != (rung.backend, rung.variant) or rung.dtype not in (None, spec.dtype):
        return False
    if rung.target is None:
        return rung.dtype is None or spec.target not in {each.target for each in ladder.formats}
    return spec.target == rung.target
