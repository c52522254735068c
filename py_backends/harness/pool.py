"""The resources of a comparison: one worker for each backend and target, and the cases that they share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import Lock
from typing import Any, Self

import numpy as np

from py_backends.contract import Problem, Target
from py_backends.harness.case import Case
from py_backends.harness.running_row import RunningRow
from py_backends.results.spec import Sizes
from py_backends.system import machine
from py_backends.workers.runner import Runner

COPIES = 6
"""The most memory that a case needs, in multiples of its arrays: reference, bound, and the copies of a backend."""
_OF_INPUTS, _OF_RESULT = 4, 6
"""Copies in float64 that a reference with a bound needs: of the inputs, and of the result beside them. Later, to judge
by it, the result alone needs all of them. In narrow formats that is most of what a case needs."""


class Pool:
    """Holds workers and shared memory. Leaving it ends the workers and frees the memory.

    cold: whether samples begin with empty caches.
    patience: as in `Plan`.
    """

    def __init__(self, threads: int, seed: int, *, cold: bool = False, patience: float | None = None) -> None:
        self._threads, self._seed, self._cold, self._patience = threads, seed, cold, patience
        self._runners: dict[tuple[str, str, int, int], Runner] = {}
        self._cases: dict[tuple[str, Sizes, str, bool], Case] = {}
        self._lock = Lock()
        self._killed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for runner in self._runners.values():
            runner.close()
        for case in self._cases.values():
            case.close()

    def runner(self, backend: str, target: Target, threads: int | None = None, copy: int = 0) -> Runner:
        """The runner of a backend and target. Its worker starts when it is first needed.

        threads: of the backend. None: those of the pool.
        copy: 0, or the number of a further worker for the same backend and target.
        """
        threads = threads or self._threads
        new = Runner(backend, target, threads, cold=self._cold, patience=self._patience)
        runner = self._runners.setdefault((backend, target.name, threads, copy), new)
        if self._killed:
            runner.kill()
        return runner

    def runner_of(self, row: RunningRow, copy: int = 0) -> Runner:
        """The runner of a row, or that of a copy of it."""
        return self.runner(row.spec.backend, row.target, row.threads, copy)

    def kill(self) -> None:
        """End all workers at once. A thread that waits for one gets WorkerFailed."""
        self._killed = True
        for runner in list(self._runners.values()):
            runner.kill()

    def case(self, problem: Problem, sizes: Sizes, dtype: np.dtype[Any], *, checked: bool = True) -> Case:
        """The one case of these sizes. Raises MemoryError, with a sentence, if this machine has too little memory.

        checked: whether its results are checked. Estimates use a case of their own, with other inputs and another
            output. So the late result of a kernel that nobody waited for cannot pass for that of a checked run.
        """
        key = (problem.name, sizes, dtype.name, checked)
        with self._lock:
            if key not in self._cases:
                check_memory(problem, sizes, dtype)
                self._cases[key] = Case(problem, sizes, dtype, self._seed + (not checked))
            return self._cases[key]

    def keep_only(self, cases: Sequence[Case]) -> None:
        """Free all cases but these: those that only estimates needed."""
        for key, case in list(self._cases.items()):
            if case not in cases:
                for runner in self._runners.values():
                    runner.unload(case)
                self._cases.pop(key).close()


def needed_memory(problem: Problem, sizes: Sizes, dtype: np.dtype[Any]) -> int:
    """About the most bytes that a case needs at one time."""
    of_arrays = problem.bytes(sizes, dtype) * COPIES
    if problem.rule != "componentwise":
        return of_arrays
    elements = list(map(math.prod, problem.shapes(sizes)))
    inputs, results = sum(elements[: len(problem.inputs)]), sum(elements[len(problem.inputs) :])
    of_reference = _OF_INPUTS * max(inputs, results) + _OF_RESULT * results
    return max(of_arrays, of_reference * np.dtype(np.float64).itemsize)


def check_memory(problem: Problem, sizes: Sizes, dtype: np.dtype[Any]) -> None:
    """Raise MemoryError, with a sentence, if this machine has too little memory for a case."""
    needed = needed_memory(problem, sizes, dtype)
    free = machine.free_memory()
    if needed > free:
        shape = " x ".join(map(str, sizes))
        raise MemoryError(f"{problem.name} {shape} needs about {_gigabytes(needed)}, and {_gigabytes(free)} are free")


def _gigabytes(count: int) -> str:
    return f"{math.ceil(count / 1e8) / 10:,.1f} GB"
