"""What a run has to do: which rows it has, and how it spends its budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from py_backends.harness.request import Request
from py_backends.harness.schedule import Schedule, until_known
from py_backends.results.spec import Spec
from py_backends.results.verdicts import LOOKS
from py_backends.workers import probe
from py_backends.workers.probe import BackendTarget


@dataclass(frozen=True)
class Plan:
    """What to run, and how to spend the budget.

    backends: the names of the backends to probe.
    specs: makes the specs of the rows from the targets that were found.
    timed_only: whether only timed rows are of use. Then an emulated row is `unavailable`.
    runs: the number of runs for which each row must have time: checks, warm-up, and rounds. With fewer runs, a slow row
        keeps a larger shape, and there are fewer rounds.
    shorten: whether a row that takes too long runs at a smaller shape. If not, it is skipped.
    rounds: the most rounds.
    least_rounds: the fewest rounds, even if they exceed the budget.
    targets: named targets. A backend may have them without listing them.
    threads: numbers of threads, for backends with another target for each number.
    controls: whether copies of the baseline run beside it, by which rows are judged. Without controls, rows are
        compared with one another, and the baseline is a row like any other.
    patience: seconds without an answer after which a worker counts as hung. None: those of any worker.
    schedule: which rows each round samples. A row that it never takes is left out of the results.
    """

    backends: Sequence[str]
    specs: Callable[[Sequence[BackendTarget]], list[Spec]]
    timed_only: bool = False
    runs: int = 48
    shorten: bool = True
    rounds: int = 500
    least_rounds: int = LOOKS
    targets: Sequence[str] = ()
    threads: Sequence[int] = ()
    controls: bool = True
    patience: float | None = None
    schedule: Schedule = until_known

    @classmethod
    def of(cls, request: Request, specs: Callable[[Sequence[BackendTarget]], list[Spec]], **how: Any) -> Plan:
        """The plan for the backends and targets of a request; `how`: other fields."""
        return cls(list(request.backends or probe.names()), specs, targets=request.targets or (), **how)
