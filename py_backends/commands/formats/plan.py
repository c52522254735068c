"""What is run to compare number formats: every backend in each format, in the same rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from py_backends.harness.plan import Plan
from py_backends.harness.request import Request
from py_backends.number_formats import DTYPES
from py_backends.results.spec import Sizes

_RUNS = 16
"""Each row must have time for this many runs. There are many rows, and few of them are close to each other."""
_LEAST_ROUNDS = 6
"""Fewer give no 95% interval."""


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
    """The plan. Raises WrongRequest for unknown names and impossible sizes. The parameters are those of `compare`.

    every_target: whether a backend runs on all targets of a device, and not only on the first.
    """
    request = Request(kernels, backends, targets, variants, dtypes, shapes, every_target)
    return Plan.of(request, request.specs, timed_only=True, runs=_RUNS, least_rounds=_LEAST_ROUNDS)
