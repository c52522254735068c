"""What a comparison runs on: one worker a (backend, target), and the cases that they share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import Lock
from typing import Any, Self

import numpy as np

from py_backends.contract import Problem, Target
from py_backends.harness import machine
from py_backends.harness.case import Case
from py_backends.harness.runner import Runner
from py_backends.harness.spec import Sizes

COPIES = 6
"""Memory that a case takes over its own arrays, at most: reference, bound, and what a backend copies."""


class Bench:
    """Holds workers and shared memory; leaving it ends the ones and frees the other.

    cold: whether samples begin with empty caches.
    """

    def __init__(self, threads: int, seed: int, *, cold: bool = False) -> None:
        self._threads, self._seed, self._cold = threads, seed, cold
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
        """The way to a (backend, target), or to one more copy of it; its worker starts when it is first needed.

        threads: as of the bench where None.
        """
        threads = threads or self._threads
        new = Runner(backend, target, threads, cold=self._cold)
        runner = self._runners.setdefault((backend, target.name, threads, copy), new)
        if self._killed:
            runner.kill()
        return runner

    def kill(self) -> None:
        """End all workers, in the middle of what they do; whoever waits for one gets WorkerFailed."""
        self._killed = True
        for runner in list(self._runners.values()):
            runner.kill()

    def case(self, problem: Problem, sizes: Sizes, dtype: np.dtype[Any], *, checked: bool = True) -> Case:
        """The one case of these sizes; MemoryError, with a sentence, where this machine has too little.

        What is not to be checked, runs that serve for estimates, has other inputs and another output:
        the late result of a kernel that nobody waited for must not pass for that of a checked run.
        """
        key = (problem.name, sizes, dtype.name, checked)
        with self._lock:
            if key not in self._cases:
                check_memory(problem, sizes, dtype)
                self._cases[key] = Case(problem, sizes, dtype, self._seed + (not checked))
            return self._cases[key]

    def keep_only(self, cases: Sequence[Case]) -> None:
        """Free the cases that served for estimates."""
        for key, case in list(self._cases.items()):
            if case not in cases:
                for runner in self._runners.values():
                    runner.unload(case)
                self._cases.pop(key).close()


def check_memory(problem: Problem, sizes: Sizes, dtype: np.dtype[Any]) -> None:
    """MemoryError, with a sentence, where this machine has too little memory for a case."""
    needed = problem.bytes(sizes, dtype) * COPIES
    free = machine.free_memory()
    if needed > free:
        shape = " x ".join(map(str, sizes))
        raise MemoryError(f"{problem.name} {shape} needs about {_gigabytes(needed)}, and {_gigabytes(free)} are free")


def _gigabytes(count: int) -> str:
    return f"{math.ceil(count / 1e8) / 10:,.1f} GB"
