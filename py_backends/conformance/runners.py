"""The workers of a run: one for each (backend, target), which compile beforehand what takes long."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from py_backends.conformance.calling import MODULE
from py_backends.conformance.selection import Subject
from py_backends.conformance.trials import DTYPES
from py_backends.contract import Target
from py_backends.harness import machine
from py_backends.harness.runner import Runner
from py_backends.harness.workers import WorkerFailed
from py_backends.kernel_text import KernelText

_Place = tuple[str, str]
"""A backend and the name of its target."""


class Runners:
    """Gives everybody the one way to a (backend, target).

    Compiling takes seconds in some backends, of one core: others run meanwhile.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._runners: dict[_Place, Runner] = {}
        self._compiling: dict[_Place, Future[None]] = {}
        self._pool = ThreadPoolExecutor(machine.cpus(), "py-backends-compiling")

    def compile(self, subjects: Iterable[Subject]) -> None:
        """Begin to compile the texts that take long, those of each target one after the other."""
        texts: dict[_Place, list[Subject]] = {}
        for subject in {subject.label: subject for subject in subjects}.values():
            if subject.target.just_in_time:
                texts.setdefault((subject.text.backend, subject.target.name), []).append(subject)
        for place, together in texts.items():
            runner = self._runner(place[0], together[0].target)
            self._compiling[place] = self._pool.submit(_compile, runner, [each.text for each in together])

    def get(self, backend: str, target: Target) -> Runner:
        """The runner, once nobody else uses it."""
        if compiling := self._compiling.get((backend, target.name)):
            compiling.result()
        return self._runner(backend, target)

    def close(self) -> None:
        """End all workers."""
        self._pool.shutdown(cancel_futures=True)
        for runner in self._runners.values():
            runner.close()

    def _runner(self, backend: str, target: Target) -> Runner:
        place = backend, target.name
        if place not in self._runners:
            self._runners[place] = Runner(
                backend, target, machine.cpus(), patience=self._patience, module=MODULE, stopped_between=False
            )
        return self._runners[place]


def _compile(runner: Runner, texts: list[KernelText]) -> None:
    for text in texts:
        for dtype in DTYPES:
            with contextlib.suppress(WorkerFailed):  # whoever needs it will see the same
                runner.compile(text, np.dtype(dtype))
