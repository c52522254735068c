"""What is predicted, and what is measured or read for it."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import py_backends
from py_backends import registry
from py_backends.commands.predict.analysis import SCALINGS, Model, calls, predictions
from py_backends.commands.predict.machine import MPI, measured, of_results
from py_backends.errors import WrongRequest
from py_backends.harness.compare import Progress
from py_backends.harness.sizing import grown
from py_backends.ranks.networks import Network
from py_backends.results.report import Prediction, Report
from py_backends.results.spec import Sizes
from py_backends.system import machine

_THOUSAND_TIMES = 1000
"""The default work over that of `compare`, which is for one machine."""
_LEAST_SECONDS = 2.0


@dataclass(frozen=True)
class Request:
    """What is predicted.

    ranks: their numbers, the smallest first.
    network: between them; None for that of ranks on this machine, which is measured.
    node: results of the machine that will compute; None to measure this one.
    threads: of each rank; None for all CPUs of a node, or the rank's share of them on one machine.
    """

    kernels: Sequence[str]
    variants: Sequence[str] | None
    dtypes: Sequence[str]
    shapes: Mapping[str, Sequence[Sizes]]
    ranks: Sequence[int]
    network: Network | None
    node: Path | None = None
    threads: int | None = None
    budget: float = 40.0
    command: str | None = None

    def threads_of_each(self) -> int:
        """The threads of a rank of this machine. Raises WrongRequest if its ranks do not divide its CPUs."""
        cpus = machine.cpus()
        if self.network is None:
            if max(self.ranks) < 2:
                raise WrongRequest("the network `here` is between ranks of this machine: give --ranks of 2 or more")
            for ranks in self.ranks:
                if cpus % ranks:
                    raise WrongRequest(
                        f"{ranks} ranks do not divide the {cpus} CPUs of this machine, whose network was asked for: "
                        "give --ranks that do, or another --network"
                    )
        most = cpus // (max(self.ranks) if self.network is None else 1)
        if self.threads is not None and self.threads > most:
            raise WrongRequest(f"a rank has {self.threads} threads, and this machine {most} CPUs for it: give fewer")
        return self.threads or most

    def workloads(self) -> Iterator[tuple[tuple[str, str, str], Sizes]]:
        """Kernel, variant and dtype, and the sizes for one rank. Raises WrongRequest for what there is not."""
        found = [
            ((kernel, variant, dtype), sizes)
            for kernel in self.kernels
            for dtype in self.dtypes
            for variant in self._variants(kernel, dtype)
            for sizes in self._sizes(kernel)
        ]
        if not found:
            raise WrongRequest(
                f"{MPI} has no source of {', '.join(self.kernels)} in {', '.join(self.dtypes)}"
                + (f" of the variant {', '.join(self.variants)}" if self.variants else "")
            )
        yield from found

    def _variants(self, kernel: str, dtype: str) -> list[str]:
        if dtype not in registry.problem(kernel).dtypes:
            return []
        has = list(registry.kernel_texts(kernel, MPI))
        wanted = has[:1] if self.variants is None else has if "all" in self.variants else self.variants
        return [variant for variant in wanted if variant in has]

    def _sizes(self, kernel: str) -> Sequence[Sizes]:
        problem = registry.problem(kernel)
        given = self.shapes.get(kernel) or [grown(problem, problem.default_sizes, _THOUSAND_TIMES)]
        for sizes in given:
            if 0 in sizes[: len(problem.dimensions)]:
                raise WrongRequest(f"{kernel} of a size 0 has no work that ranks could share: give another")
        return given


def report(request: Request, progress: Progress | None) -> Report:
    """The predictions that are requested. Raises WrongRequest, and BackendUnavailable if nothing can be measured."""
    workloads, node = list(request.workloads()), _node(request)
    threads = 0 if node else request.threads_of_each()
    found: list[Prediction] = []
    for at, (kernel, sizes) in enumerate(workloads):
        if progress:
            progress.update(at, len(workloads), f"{' '.join(kernel)}: what a rank's work costs")
        seconds = max(_LEAST_SECONDS, request.budget / len(workloads))
        model = _model(request, kernel, sizes, threads, seconds, node)
        if progress:
            progress.update(at + 0.9, len(workloads), f"{' '.join(kernel)}: predicting")
        found += predictions(model, sizes, request.ranks, SCALINGS)
    return Report(
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        package_version=py_backends.__version__,
        machine=node.machine if node else machine.describe(),
        settings={
            "threads": found[0].threads,
            "budget_seconds": request.budget,
            "command": request.command,
            "node": str(request.node) if request.node else None,
            "network": asdict(model.network),
        },
        predictions=found,
    )


def _node(request: Request) -> Report | None:
    """The results of the machine that will compute, if they are given. Raises WrongRequest for what they decide."""
    if request.node is None:
        return None
    if request.network is None:
        raise WrongRequest("the network `here` is measured by ranks of this machine: leave out --node, or name another")
    if request.threads is not None:
        raise WrongRequest("the results of --node say how many threads a rank has: leave out --threads")
    return Report.read(request.node)


def _model(
    request: Request, kernel: tuple[str, str, str], sizes: Sizes, threads: int, seconds: float, node: Report | None
) -> Model:
    if node:
        machine = of_results(node, str(request.node), kernel)
        assert request.network, "results say nothing of this machine's network"
        return Model(MPI, *kernel, request.network, lambda _: machine)
    here = request.network is None
    by_ranks, network = {}, request.network
    groups = [[ranks] for ranks in sorted({1, *request.ranks})] if here else [list(request.ranks)]
    for group in groups:
        ranks = group[0] if here else 1
        by_ranks[ranks], between = measured(
            kernel, _wanted(kernel, {1, *group}, sizes), ranks, threads, seconds / len(groups)
        )
        network = request.network or between or network
    assert network, "several ranks of this machine have one"
    return Model(MPI, *kernel, network, by_ranks.__getitem__ if here else lambda _: by_ranks[1])


def _wanted(kernel: tuple[str, str, str], ranks: Iterable[int], sizes: Sizes) -> list[Sizes]:
    """The sizes of all calls that matter."""
    problem = registry.problem(kernel[0])
    return list(
        {
            each
            for count in ranks
            for of_all in (sizes, grown(problem, sizes, count))
            for each in calls(MPI, kernel, count, of_all)
        }
    )
