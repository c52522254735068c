"""The goals of all kernels: every ratio that is asked for. Those of a kernel are in kernels/KERNEL/goals.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec

from benchmarks.contenders import Conditions, Goal
from benchmarks.lines import DTYPES, ELEMENTS, SIZES, Group, Scale
from py_backends import registry


def goals(
    dtypes: Sequence[str] = DTYPES,
    sizes: Sequence[int] = SIZES,
    elements: int = ELEMENTS,
    kernels: Sequence[str] | None = None,
    threads: int | None = None,
) -> list[Goal]:
    """All goals, at these sizes of square matrices and with vectors of so many elements where they are to be large."""
    found = [
        goal
        for kernel in kernels or registry.kernel_names()
        for group in _groups(kernel)
        for dtype in group.chosen(dtypes)
        for line in group.lines
        for goal in line.goals(
            Conditions(kernel, dtype, None if group.on_gpus else threads), group.sizes(Scale(sizes, elements))
        )
    ]
    return [goal for at, goal in enumerate(found) if goal not in found[:at]]  # two lines may choose one of few sizes


def _groups(kernel: str) -> Iterator[Group]:
    home = f"py_backends.kernels.{kernel}"
    if find_spec(home) and find_spec(f"{home}.goals"):
        yield from import_module(f"{home}.goals").GOALS


KERNELS = tuple(dict.fromkeys(goal.conditions.kernel for goal in goals()))
"""Those that goals are asked of."""
BACKENDS = tuple(dict.fromkeys(goal.backend for goal in goals()))
"""Those that are asked to reach them."""
