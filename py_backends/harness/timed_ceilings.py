"""Ceilings that rounds sample. Those of the CPU have a worker of their own; those of a device use the row's worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from py_backends.results.report import MULTIPLY_ADDS, Ceiling, by_round
from py_backends.results.statistics import median
from py_backends.workers.process import Worker, WorkerFailed

_ON_CORES_OF_THEIR_OWN = {"OMP_PROC_BIND": "spread", "OMP_PLACES": "cores"}
"""Variables of OpenMP. They give each thread its own core, whatever the user has set. A worker that continues may have
several threads on one CPU. They wait for each other until the system moves one away, which takes longer than a
sample."""


@dataclass(eq=False)
class TimedCeiling:
    """A ceiling that rounds sample.

    measure: takes a sample, in FLOP/s or bytes a second. None where its device has no such ceiling.
    samples: by the number of their round.
    """

    kind: str
    dtype: str
    instruction_set: str | None
    threads: int | None
    working_set: int | None
    measure: Callable[[TimedCeiling], float | None]
    device: str = "cpu"
    samples: dict[int, float] = field(default_factory=dict)
    failed: WorkerFailed | None = None
    record: list[float] = field(default_factory=list)
    """Samples outside of the rounds."""

    @property
    def title(self) -> str:
        """What is measured, in a few words."""
        return f"ceiling {self.dtype} {self.kind.replace('_', ' ')}"

    @property
    def workload(self) -> None:
        """None: a ceiling belongs to no workload."""

    def sample(self) -> float:
        """Take one sample. Raises WorkerFailed if that fails, or if the device has no such ceiling."""
        rate = self.measure(self)
        if rate is None:
            raise WorkerFailed("unavailable", f"no ceiling is measured for {self.device}")
        return rate

    def summary(self) -> Ceiling:
        """The ceiling for the results: by the samples of the rounds, or without any by those of the record."""
        unit = "gflops" if self.kind == MULTIPLY_ADDS else "gbytes_per_second"
        middle = median([rate / 1e9 for rate in self.samples.values() or self.record])
        return Ceiling(
            device=self.device,
            kind=self.kind,
            dtype=self.dtype,
            instruction_set=self.instruction_set,
            threads=self.threads,
            working_set_bytes=self.working_set,
            unit=unit,
            rate=middle.value,
            low=middle.low,
            high=middle.high,
            by_round=by_round({number: rate / 1e9 for number, rate in self.samples.items()}),
        )


class CeilingWorker:
    """The worker that measures the CPU's ceilings. It starts when it is needed, and again after a failure."""

    def __init__(self) -> None:
        self.largest = 0
        """Bytes of the largest working set that will be requested."""
        self._worker: Worker | None = None

    def sample(self, ceiling: TimedCeiling) -> float:
        """Take one sample of a ceiling. Raises WorkerFailed if that fails."""
        try:
            if self._worker is None:
                self._worker = Worker(_ON_CORES_OF_THEIR_OWN, "py_backends.workers.ceiling_session")
                self._worker.ask("open", largest=self.largest)
            answer = self._worker.ask(
                "sample",
                kind=ceiling.kind,
                dtype=ceiling.dtype,
                threads=ceiling.threads,
                instruction_set=ceiling.instruction_set,
                working_set=ceiling.working_set,
            )
        except WorkerFailed:
            self.close()
            raise
        rate: float = answer["rate"]
        return rate

    def close(self) -> None:
        """End the worker."""
        if self._worker:
            self._worker.close()
        self._worker = None
