"""Launches on a device in this process: a case is laid out for it, launched, and judged.

The suite does this in workers, for targets. Here are devices that are no target: a CPU with the kernels for GPUs, one
that is told other facts of itself, one under an instrument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from py_backends import registry
from py_backends.conformance.any_kernel import ALWAYS
from py_backends.conformance.caller import lay
from py_backends.conformance.calls import Layout
from py_backends.conformance.sizes import middling
from py_backends.conformance.trials import chosen, of_kernel
from py_backends.contract import Array, Device, Launch, Problem
from py_backends.harness.case import Case
from py_backends.kernel_text import KernelText
from py_backends.results.check import check_output
from py_backends.results.spec import Sizes

_STEPS = 9
"""What stands for a number that belongs to no array: more steps than one launch does."""
_LITTLE, _BEARABLE = 20_000, 200_000
"""Work, as the problem counts it."""

Layer = Callable[[Case], list[Array]]
"""Lays the arrays of a case out as a device gets them: flat, the output last."""


def tuned(backend: str) -> list[KernelText]:
    """The tuned sources of a backend, each of another kernel."""
    every = (registry.kernel_texts(kernel, backend) for kernel in registry.kernel_names())
    return [texts["tuned"] for texts in every if "tuned" in texts]


def telling_sizes(problem: Problem) -> list[Sizes]:
    """Nothing, those that show the most, edges, and some of several groups or passes, as the kernel itself says."""
    own = of_kernel(problem.name)
    several = (*(own.few or middling(problem)), *problem.edges, *own.larger, *own.of_tiles)
    return list(dict.fromkeys([*_of_kind("nothing", problem), *(_whole(problem, sizes) for sizes in several)]))


def interpreted_sizes(problem: Problem) -> list[Sizes]:
    """Nothing, and those with little work at which the suite tries work items that are interpreted one by one."""
    several = (*_of_kind("nothing", problem), *_of_kind("shapes", problem, interpreted=True))
    return [sizes for sizes in several if problem.work(sizes) <= _LITTLE]


def larger_sizes(problem: Problem) -> list[Sizes]:
    """At most four of several groups or passes, which an interpreter does in seconds, from the least work on."""
    several = (_whole(problem, sizes) for sizes in of_kernel(problem.name).of_several_pages)
    every = sorted({*several, *telling_sizes(problem)}, key=lambda sizes: (problem.work(sizes), sizes))
    found = [sizes for sizes in every if _LITTLE < problem.work(sizes) <= _BEARABLE]
    return found[:: max(1, -(-len(found) // 4))]


def _of_kind(name: str, problem: Problem, *, interpreted: bool = False) -> list[Sizes]:
    """The sizes of a kind's cases in a quick run of the suite."""
    (kind,) = (kind for kind in ALWAYS if kind.name == name)
    return [trial.sizes for trial in chosen(kind, problem.name, "float32", quick=True, interpreted=interpreted)]


def _whole(problem: Problem, sizes: Sizes) -> Sizes:
    """The sizes with all numbers that belong to no array."""
    return (*sizes, *(_STEPS for _ in problem.numbers)) if len(sizes) == len(problem.dimensions) else sizes


def with_guards(case: Case) -> list[Array]:
    """With the poison behind each input, and behind the output what no kernel may change."""
    return [case._part(at, span.first, span.size + span.zone) for at, span in enumerate(case.spans)]


def alone(case: Case) -> list[Array]:
    """Nothing but their elements, so that an instrument sees each access beyond."""
    return [*case.inputs, case.output.reshape(-1)]


def before_walls(case: Case) -> list[Array]:
    """Each ends where a page does, and nobody may read or write the next one."""
    return [lay(array, Layout(wall=True)).array for array in alone(case)]


def wrong(
    device: Device,
    launch: Launch,
    problem: Problem,
    several: Iterable[Sizes],
    dtype: str,
    laid: Layer = with_guards,
) -> dict[Sizes, str]:
    """Launch a source, compiled once, at several sizes; what is wrong with results, where anything is."""
    found = {sizes: _wrong(device, launch, problem, sizes, np.dtype(dtype), laid) for sizes in several}
    return {sizes: reason for sizes, reason in found.items() if reason}


def _wrong(
    device: Device, launch: Launch, problem: Problem, sizes: Sizes, dtype: np.dtype[np.generic], laid: Layer
) -> str | None:
    case = Case(problem, _whole(problem, sizes), dtype, seed=11)
    try:
        *inputs, output = laid(case)
        before = [array.tobytes() for array in inputs]
        uploaded = output.size > case.output.size  # what is behind it has to be on the device
        buffers = [*map(device.upload, inputs), (device.upload if uploaded else device.allocate)(output)]
        launch(buffers, case.sizes)
        device.wait()
        device.download(buffers[-1], output)
        for buffer in buffers:
            device.release(buffer)
        case.output.reshape(-1)[:] = output[: case.output.size]
        if [array.tobytes() for array in inputs] != before:
            return "it changed an input"
        return case.trespass() or check_output(case.output, case.references[0], problem.rule).reason
    finally:
        case.close()
