"""Runs kinds of cases through a worker, and says what did not hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from py_backends._contract import Array, KernelText, Problem
from py_backends.conformance.trials import Kind, Prepared
from py_backends.harness import machine
from py_backends.harness.check import judge
from py_backends.harness.memory import guard_elements, same_bits
from py_backends.harness.runner import Runner
from py_backends.harness.stage import Stage
from py_backends.harness.workers import WorkerFailed

MOST_FAILURES = 3
"""Cases of a kind that may fail before the others are left out: some crash or hang, and each then takes seconds."""
_SMALL_STAGE = 2**26
_ANY_DEVICE_HOLDS = 2**20
"""Bytes of a case's arrays for which a device must have memory."""
_COPIES = 8
"""Of a case's arrays, at most: inputs, reference, its parts, the stage."""


@dataclass
class Outcome:
    """What became of the cases of one kind, for one text, target and dtype.

    ran: names of cases that ran.
    failures: the case and what was wrong, the first few.
    left_out: a case that was not run, and why.
    """

    ran: list[str] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)

    @property
    def hung(self) -> bool:
        """Whether a case did not end."""
        return any(reason.startswith("timeout") for _, reason in self.failures)

    @property
    def exhausted(self) -> bool:
        """Whether so many have failed, or one took so long, that no further one shows more."""
        return self.hung or len(self.failures) >= MOST_FAILURES

    def add(self, name: str, wrong: str | None) -> None:
        """Note a case that ran."""
        self.ran.append(name)
        if wrong is not None:
            self.failures.append((name, wrong))


class Stages:
    """The memory of all cases: one stage for the small ones, and one for each that does not fit there."""

    def __init__(self) -> None:
        self._small: dict[int, Stage] = {}

    def run(self, runner: Runner, text: KernelText, case: Prepared, *, again: bool) -> str | None:
        """Run a case; what is wrong, or None. MemoryError where this machine or the device has too little for it.

        again: whether it runs twice, and has to leave the same bits.
        """
        problem, arrays = text.problem, len(case.inputs) + 1
        shape = problem.shapes(case.trial.sizes)[-1]
        needed = _bytes(case, shape)
        if needed > _SMALL_STAGE:
            return self._run_apart(runner, text, case, shape, needed)
        stage = self._small.get(arrays) or self._small.setdefault(arrays, Stage(arrays, _SMALL_STAGE))
        return run_on(stage, runner, text, case, again=again)

    def _run_apart(
        self, runner: Runner, text: KernelText, case: Prepared, shape: tuple[int, ...], needed: int
    ) -> str | None:
        if needed * _COPIES > machine.free_memory():
            raise MemoryError(f"it needs {needed * _COPIES / 2**30:.1f} GiB, which are not free")
        stage = Stage(len(case.inputs) + 1, needed)
        try:
            return run_on(stage, runner, text, case, again=False)
        finally:
            runner.unload(stage)
            stage.close()

    def close(self) -> None:
        """Give the memory back."""
        for stage in self._small.values():
            stage.close()


def run_kind(
    runner: Runner, text: KernelText, kind: Kind, cases: Iterable[Prepared], stages: Stages, *, deterministic: bool
) -> Outcome:
    """Run cases of a kind until some have failed."""
    outcome = Outcome()
    for case in cases:
        if outcome.exhausted:
            outcome.left_out.append((case.trial.name, "others had failed"))
            continue
        try:
            wrong = stages.run(runner, text, case, again=kind.again and deterministic)
        except MemoryError as error:
            outcome.left_out.append((case.trial.name, str(error)))
        else:
            outcome.add(case.trial.name, wrong)
    return outcome


def run_on(stage: Stage, runner: Runner, text: KernelText, case: Prepared, *, again: bool) -> str | None:
    """Put a case on a stage, run it, and judge what it left; what is wrong, or None. MemoryError as of `Stages.run`."""
    problem, trial = text.problem, case.trial
    starts = trial.starts + trial.starts[-1:] * (len(case.inputs) + 1 - len(trial.starts))
    stage.set(trial.sizes, case.inputs, problem.shapes(trial.sizes)[-1], starts, bare=trial.bare)
    try:
        changed = runner.run_on_stage(text, stage)
        wrong = stage.trespass() or changed or verdict(stage.output, case, problem.rule)
        if not again or wrong is not None:
            return wrong
        first = stage.output.copy()
        stage.poison()
        changed = runner.run_on_stage(text, stage)
    except WorkerFailed as failed:
        return failure(failed, problem, trial.sizes, stage.dtype)
    return stage.trespass() or changed or _other_bits(first, stage.output)


def failure(failed: WorkerFailed, problem: Problem, sizes: Sequence[int], dtype: np.dtype[Any]) -> str:
    """What a worker that failed says of a case; MemoryError where its device need not have had the memory."""
    if failed.status == "skipped" and problem.bytes(sizes, dtype) > _ANY_DEVICE_HOLDS:
        raise MemoryError(failed.reason)
    return f"{failed.status}: {failed.reason}"


def verdict(output: Array, case: Prepared, rule: str) -> str | None:
    """What is wrong with a result; None where nothing is."""
    if case.trial.exact:
        return _inexact(output, case.reference.value)
    return judge(output, case.reference, rule).reason


def _inexact(output: Array, value: Array) -> str | None:
    wrong = np.argwhere(~(output == value))  # 0 and -0 are the same number
    return f"{_first(wrong, output, value)}, which is exact in any order" if len(wrong) else None


def _other_bits(first: Array, second: Array) -> str | None:
    wrong = np.argwhere(~same_bits(first, second))
    if not len(wrong):
        return None
    return f"{_first(wrong, second, first).replace('is right', 'was before')}, and it says that it is deterministic"


def _first(wrong: Array, output: Array, value: Array) -> str:
    place = tuple(map(int, wrong[0]))
    return (
        f"{len(wrong)} of {output.size} elements are wrong, the first at [{', '.join(map(str, place))}]: "
        f"{output[place]:.17g} where {value[place]:.17g} is right"
    )


def _bytes(case: Prepared, shape: Sequence[int]) -> int:
    """What the largest array of a case needs on a stage."""
    itemsize = case.inputs[0].itemsize
    largest = max(math.prod(shape), *(array.size for array in case.inputs))
    return (largest + 2 * guard_elements(case.trial.sizes) + 2048) * itemsize
