"""Runs kinds of cases through a worker, and says what did not hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from py_backends.conformance.trials import Kind, Prepared
from py_backends.contract import Array, Problem
from py_backends.harness import machine
from py_backends.harness.arena import Arena, span
from py_backends.harness.check import judge
from py_backends.harness.memory import same_bits
from py_backends.harness.runner import Runner
from py_backends.harness.workers import WorkerFailed
from py_backends.kernel_text import KernelText

MOST_FAILURES = 3
"""Cases of a kind that may fail before the others are left out: some crash or hang, and each then takes seconds."""
_SMALL_ARENA = 2**26
_ANY_DEVICE_HOLDS = 2**20
"""Bytes of a case's arrays for which a device must have memory."""
_COPIES = 8
"""Of a case's arrays, at most: inputs, reference, its parts, the arena."""


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


class Arenas:
    """The memory of all cases: one arena for the small ones, and one for each that does not fit there."""

    def __init__(self) -> None:
        self._small: dict[int, Arena] = {}

    def run(self, runner: Runner, text: KernelText, case: Prepared, *, again: bool) -> str | None:
        """Run a case; what is wrong, or None. MemoryError where this machine or the device has too little for it.

        again: whether it runs twice, and has to leave the same bits.
        """
        problem, arrays = text.problem, len(case.inputs) + 1
        shape = problem.shapes(case.trial.sizes)[-1]
        needed = _bytes(case, shape)
        if needed > _SMALL_ARENA:
            return self._run_apart(runner, text, case, shape, needed)
        arena = self._small.get(arrays) or self._small.setdefault(arrays, Arena([_SMALL_ARENA] * arrays))
        return run_on(arena, runner, text, case, again=again)

    def _run_apart(
        self, runner: Runner, text: KernelText, case: Prepared, shape: tuple[int, ...], needed: int
    ) -> str | None:
        if needed * _COPIES > machine.free_memory():
            raise MemoryError(f"it needs {needed * _COPIES / 2**30:.1f} GiB, which are not free")
        arena = Arena([needed] * (len(case.inputs) + 1))
        try:
            return run_on(arena, runner, text, case, again=False)
        finally:
            runner.unload(arena)
            arena.close()

    def close(self) -> None:
        """Give the memory back."""
        for arena in self._small.values():
            arena.close()


def run_kind(
    runner: Runner, text: KernelText, kind: Kind, cases: Iterable[Prepared], arenas: Arenas, *, deterministic: bool
) -> Outcome:
    """Run cases of a kind until some have failed."""
    outcome = Outcome()
    for case in cases:
        if outcome.exhausted:
            outcome.left_out.append((case.trial.name, "others had failed"))
            continue
        try:
            wrong = arenas.run(runner, text, case, again=kind.again and deterministic)
        except MemoryError as error:
            outcome.left_out.append((case.trial.name, str(error)))
        else:
            outcome.add(case.trial.name, wrong)
    return outcome


def run_on(arena: Arena, runner: Runner, text: KernelText, case: Prepared, *, again: bool) -> str | None:
    """Put a case into an arena, run it, and judge what it left; what is wrong, or None. MemoryError as of `Arenas`."""
    problem, trial = text.problem, case.trial
    arena.place(trial.sizes, case.inputs[0].dtype, problem.shapes(trial.sizes), trial.starts, bare=trial.bare)
    for place, array in zip(arena.inputs, case.inputs, strict=True):
        place[...] = array.reshape(-1)
    try:
        changed = runner.run(text, arena)
        wrong = arena.trespass() or changed or verdict(arena.output, case, problem.rule)
        if not again or wrong is not None:
            return wrong
        first = arena.output.copy()
        arena.poison()
        changed = runner.run(text, arena)
    except WorkerFailed as failed:
        return failure(failed, problem, trial.sizes, arena.dtype)
    return arena.trespass() or changed or _other_bits(first, arena.output)


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
    """What the largest array of a case needs in an arena."""
    largest = max(math.prod(shape), *(array.size for array in case.inputs))
    return max(span(largest, case.trial.sizes, case.inputs[0].dtype, start).end for start in case.trial.starts)
