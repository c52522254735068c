"""A row of a comparison while it runs: planned, checked, and timed in rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Self

import numpy as np

from py_backends import registry
from py_backends.contract import Problem, Target
from py_backends.harness.case import Case
from py_backends.harness.request import how_to_ask
from py_backends.kernel_text import KernelText
from py_backends.results.check import Verdict
from py_backends.results.report import Check, Work
from py_backends.results.spec import Sizes, Spec, Workload
from py_backends.wording import listed
from py_backends.workers.probe import BackendTarget
from py_backends.workers.process import WorkerFailed
from py_backends.workers.runner import Prepared, Runner, Sample

SHORTEST_SAMPLE = 0.010
"""Seconds. Shorter kernels are repeated within a sample, to stay well above the clock's resolution."""
_MOST_REPETITIONS, _FEW_REPETITIONS = 10_000, 20
_MOST_CALLS = 9
"""Whole calls of a sample. After a pause, the threads of some runtimes share one core for a while. A single call would
meet that in up to a third of the rounds."""
_SHORTEST_DRAIN = 0.005
"""Seconds by which two equal downloads may differ on a busy machine."""
SAMPLES_TO_SUSPECT, SAMPLES_TO_CONDEMN = 3, 7
"""Samples of a row that seems to launch work without waiting for it. A short budget leaves one round, and there
a single disturbed download would condemn a row."""
_FAR_LONGER = 2
_BRIEF, LONG = 0.005, 0.050
"""Seconds of a kernel. Below the first, three uncounted launches begin a sample; from the second on, none; else one.

While a process was stopped, other processes filled the caches. This does not affect a long kernel.
"""


def warm_up(seconds: float) -> int:
    """The number of uncounted launches before a sample, for a kernel that takes so many seconds."""
    return 3 if seconds < _BRIEF else int(seconds < LONG)


def calls_of_a_sample(seconds: float) -> int:
    """The number of whole calls of a sample, for one that takes so many seconds: odd, so that one is the median."""
    return min(_MOST_CALLS, int(SHORTEST_SAMPLE / max(seconds, 1e-9)) | 1)


@dataclass(eq=False)
class RunningRow:
    """One row from its plan to its last sample. Of what it finds out, `summary.row_of` makes a row of the results.

    threads: their number, for a backend on the CPU.
    text: the kernel's source; None if there is nothing to run. Then `status` and `reason` say why.
    controls: whether copies of the baseline run beside it.
    sizes: at which it runs; smaller ones than those of `spec` if these take too long.
    status, reason, fix, notes, finished, check, estimated_seconds, percent_of_ceiling: as in `Row`.
    prepared: None before, and if it failed.
    runner, case: where it runs, from `on` on.
    samples: by the number of their round.
    """

    spec: Spec
    target: Target
    text: KernelText | None
    threads: int | None = None
    controls: bool = True
    sizes: Sizes = ()
    status: str = "skipped"
    reason: str | None = None
    fix: str | None = None
    notes: list[str] = field(default_factory=list)
    finished: bool = True
    prepared: Prepared | None = None
    check: Check | None = None
    estimated_seconds: float | None = None
    percent_of_ceiling: float | None = None
    repetitions: int = 0
    warm_up: int = 1
    calls: int = 1
    samples: dict[int, Sample] = field(default_factory=dict)
    failed: WorkerFailed | None = None
    checked_again: bool = False
    runner: Runner = field(init=False, repr=False)
    case: Case = field(init=False, repr=False)

    @property
    def problem(self) -> Problem:
        """What its kernel computes."""
        return registry.problem(self.spec.kernel)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of its inputs."""
        return np.dtype(self.spec.dtype)

    @property
    def work(self) -> Work:
        """What a launch does where it runs."""
        return Work.of(self.problem, self.case.sizes, self.dtype)

    @property
    def title(self) -> str:
        """What runs, in a few words."""
        return f"{self.spec.kernel} {self.spec.dtype} {self.spec.backend} {self.spec.target}"

    @property
    def worker(self) -> tuple[str, str, int]:
        """The backend, target and number of threads of the worker that runs it."""
        return self.spec.backend, self.spec.target, self.threads or 0

    @property
    def to_compile(self) -> int:
        """Characters of its source, if that is compiled when it is prepared."""
        return len(self.text.text) if self.text and self.target.just_in_time else 0

    @property
    def workload(self) -> Workload:
        """The workload: rows with the same one are compared."""
        return self.spec.on_any_threads.workload

    def on(self, runner: Runner, case: Case) -> Self:
        """The same row, which runs there from now on."""
        self.runner, self.case = runner, case
        return self

    def copy_on(self, runner: Runner) -> RunningRow:
        """Another row that runs as this one does, on another worker."""
        return replace(self, notes=[], samples={}, failed=None, checked_again=False).on(runner, self.case)

    def try_once(self) -> None:
        """Run once on an output of NaN with guard zones. The row becomes `ok`, `emulated` or `mismatch`."""
        self.case.poison()
        if self.spec.statement is None:
            self._check_output(self.runner.run(self._text, self.case))
        else:
            self._sample(poisoned=True)
            self._check_output()
        if self.case.remark:
            self.notes.append(self.case.remark)

    def check_timed(self) -> None:
        """Take one more sample as it was timed, on an output of NaN, and judge its result and all times."""
        self.case.poison()
        self._sample(poisoned=True)
        self._check_output()
        self.checked_again = True
        if self.status == "ok" and self._waits(list(self.samples.values())) and self.spec.statement is None:
            remark = self.runner.remark(self._text, self.case)
            self.notes += [remark] if remark else []

    def _check_output(self, wrong: str | None = None) -> None:
        """Judge the output. `wrong`: another fault of the run, if any."""
        verdict = self.case.check_output()
        if wrong is not None and verdict.check.passed:
            verdict = Verdict.wrong(verdict.check.rule, wrong)
        self.check, self.reason = verdict.check, verdict.reason
        if not verdict.check.passed:
            self.status = "mismatch"
        elif self.target.emulated:
            self.status, self.reason, self.fix = "emulated", self.target.reason, self.target.fix
        else:
            self.status = "ok"

    @property
    def _text(self) -> KernelText:
        assert self.text is not None  # rows without a source are never timed
        return self.text

    def sample(self) -> Sample:
        """Take one timed sample, with the warm-up and repetitions that `settle` chose."""
        return self._sample()

    def _sample(self, *, poisoned: bool = False) -> Sample:
        how, statement = (self.warm_up, self.repetitions), self.spec.statement
        return self.runner.sample(self._text, self.case, *how, calls=self.calls, poisoned=poisoned, statement=statement)

    def settle(self) -> bool:
        """Warm up, and choose how often a sample repeats the kernel and the whole call.

        Returns False if its times are impossible.
        """
        self.repetitions, self.calls = 0, 1
        first = self.sample()
        if self.runner.cold:  # a cold sample is always one launch
            return True
        samples = [first]
        # The first one may have loaded pages and code, or been disturbed.
        if first.on_the_host < LONG or first.on_the_host > _FAR_LONGER * (self.estimated_seconds or math.inf):
            samples += [self.sample(), self.sample()]
        seconds = min(sample.on_the_host for sample in samples)
        self.warm_up = warm_up(seconds)
        self.calls = calls_of_a_sample(min(sample.end_to_end for sample in samples))
        if seconds < SHORTEST_SAMPLE:
            wanted = min(_MOST_REPETITIONS, math.ceil(SHORTEST_SAMPLE / max(seconds, 1e-9)))
            # A few first: with a wait that does not wait, many launches would queue hours of work.
            self.repetitions = min(wanted, _FEW_REPETITIONS)
            if not self._waits_at_first():
                return False
            self.repetitions = wanted
        return True

    def _waits_at_first(self) -> bool:
        """As `_waits`, after a few samples, or fewer: work that is left over shows in all of them."""
        samples = [self.sample()]
        while self._left_over(samples) is not None and len(samples) < SAMPLES_TO_SUSPECT:
            samples.append(self.sample())
        return self._waits(samples)

    def _waits(self, samples: list[Sample]) -> bool:
        """Whether the work of a sample ended within its launches. If not, the row becomes `impossible`.

        If it seems not to have, further samples decide.
        """
        if self._left_over(samples) is None:
            return True
        left_over = self._left_over([self.sample() for _ in range(SAMPLES_TO_CONDEMN)])
        if left_over is None:
            return True
        self.status = "impossible"
        self.reason = f"its wait does not wait: {left_over}"
        return False

    def _left_over(self, samples: Sequence[Sample]) -> str | None:
        """How much of the work ended in the download, if more than launches or a busy machine explain; else None.

        Work that is left over shows in every sample, and what else the machine does only in some.
        """
        drained = sorted(sample.drain for sample in samples)[len(samples) // 4] if samples else 0.0
        launched = self.repetitions * median(sample.on_the_host for sample in samples) if samples else 0.0
        if drained <= max(launched, _SHORTEST_DRAIN):
            return None
        return (
            f"{self.repetitions} launches seemed to take {launched:.3g} s, "
            f"and the download after them {drained:.3g} s longer than after one"
        )


def running_rows(
    specs: Sequence[Spec],
    found: Sequence[BackendTarget],
    threads: int,
    *,
    timed_only: bool = False,
    controls: bool = True,
) -> list[RunningRow]:
    """A row for each spec. A row that cannot run says why.

    threads: the number for specs that have none.
    timed_only, controls: as in `Plan`.
    """
    targets = {(backend, target.name): target for backend, target in found}
    asked = [targets[spec.backend, next(iter(spec.stands_for), spec.target)] for spec in specs]
    return [
        _running_row(spec, replace(target, name=spec.target), threads, timed_only=timed_only, controls=controls)
        for spec, target in zip(specs, asked, strict=True)
    ]


def _running_row(spec: Spec, target: Target, threads: int, *, timed_only: bool, controls: bool) -> RunningRow:
    broken = registry.broken_kernels().get(spec.kernel)
    texts = {} if broken else registry.kernel_texts(spec.kernel, spec.backend)
    text = texts.get(spec.variant)
    row = RunningRow(spec, target, text, spec.threads or threads, controls, spec.sizes)
    has = () if broken else registry.problem(spec.kernel).dtypes
    if not broken and spec.dtype not in has:
        row.reason, row.fix, row.text = (
            f"{spec.kernel} has {listed(has)}{' alone' * (len(has) == 1)}",
            how_to_ask(has),
            None,
        )
    elif not target.available or (target.emulated and timed_only):
        row.status, row.reason, row.fix, row.text = "unavailable", target.reason, target.fix, None
    elif broken:  # a failure, so that nobody overlooks it
        row.status, row.reason, row.fix = "error", broken.reason, broken.fix
    elif text is None:
        row.reason = f"{spec.backend} has no {f'{spec.variant} ' if texts else ''}{spec.kernel}"
        row.fix = registry.why_no_text(spec.backend)
    return row


def baselines(rows: Sequence[RunningRow]) -> dict[int, int]:
    """By the index of each compared row, the index of its baseline if there is one."""
    workloads = [row.spec.on_any_threads.workload for row in rows]
    of_workload = {
        workload: at
        for at, workload in enumerate(workloads)
        if rows[at].controls and registry.is_baseline(rows[at].spec.backend)
    }
    found = {at: of_workload[workload] for at, workload in enumerate(workloads) if workload in of_workload}
    return {at: baseline for at, baseline in found.items() if not registry.is_baseline(rows[at].spec.backend)}
