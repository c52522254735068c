"""What is run to see how backends scale: the same work, and work that grows, on each number of threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from py_backends import registry
from py_backends.errors import WrongRequest
from py_backends.harness.plan import Plan
from py_backends.harness.request import Request
from py_backends.harness.sizing import grown
from py_backends.results.spec import Sizes, Spec
from py_backends.workers.probe import BackendTarget

_EVERY_COUNT_UP_TO = 8


def thread_counts(most: int) -> list[int]:
    """1, 2, 3 and so on up to `most`; if that is above 8, the powers of two, and `most` itself.

    Raises WrongRequest if there is only one.
    """
    if most < 2:
        raise WrongRequest("scaling compares one thread with several: give --threads 2 or more")
    if most <= _EVERY_COUNT_UP_TO:
        return list(range(1, most + 1))
    return sorted({*(2**power for power in range(most.bit_length())), most})


def plan(
    threads: Sequence[int],
    kernels: Sequence[str],
    shapes: Mapping[str, Sequence[Sizes]],
    *,
    every_target: bool = False,
    cpus: int | None = None,
    **names: Any,
) -> Plan:
    """The plan: every shape on each number of threads, and for n threads also the shape with n times the work.

    every_target: whether a backend runs on all targets of a device, or only on the first of each kind.
    cpus: the most threads, which is the number of this machine's CPUs; None for no limit. It does not apply to targets
        with another name for each number of threads: they may run elsewhere.
    names: backends, targets, variants and dtypes, as `Request` takes them.
    """
    counts: dict[tuple[str, Sizes], set[int]] = {}
    for problem in map(registry.problem, kernels):
        for sizes in shapes.get(problem.name, [problem.default_sizes]):
            if 0 in sizes[: len(problem.dimensions)]:
                raise WrongRequest(f"{problem.name} of a size 0 has no work that threads could share: give another")
            for count in threads:
                counts.setdefault((problem.name, sizes), set()).add(count)
                counts.setdefault((problem.name, grown(problem, sizes, count)), set()).add(count)
    grown_shapes = {kernel: sorted(sizes for name, sizes in counts if name == kernel) for kernel in kernels}
    request = Request(kernels, shapes=dict(shapes) | grown_shapes, every_target=every_target, **names)

    def specs(found: Sequence[BackendTarget]) -> list[Spec]:
        others = {(backend, target.name): target.on_threads for backend, target in found}
        kinds: dict[Spec, list[str]] = {}
        for spec in request.specs(found):
            for n in sorted(counts[spec.kernel, spec.sizes]):
                on_threads = others[spec.backend, spec.target]
                here = cpus is None or n <= cpus or on_threads
                if here and (target := on_threads.get(n, spec.target)):
                    kinds.setdefault(replace(spec, target=target, threads=n), []).append(spec.target)
        return [replace(spec, stands_for=tuple(of) if of != [spec.target] else ()) for spec, of in kinds.items()]

    return Plan.of(request, specs, timed_only=True, threads=threads)
