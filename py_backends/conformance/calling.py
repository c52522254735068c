"""Has calls made in a worker: a crash is a failure with its reason."""

from __future__ import annotations

from collections.abc import Sequence

import cattrs
import numpy as np

from py_backends.conformance.calls import Call, CallKind, Subject
from py_backends.conformance.running import Outcome, failure
from py_backends.conformance.trials import named_as
from py_backends.contract import Problem
from py_backends.harness.runner import Runner
from py_backends.harness.workers import WorkerFailed

MODULE = "py_backends.conformance.caller"
"""What the workers of the suite run."""


class Caller:
    """Makes calls in a runner's worker."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def ask(self, do: str, subject: Subject, calls: Sequence[Call]) -> tuple[int, str] | None:
        """Make calls: which went wrong and how, or None. WorkerFailed where the worker has none to tell."""
        unstructured = {"subject": cattrs.unstructure(subject), "calls": cattrs.unstructure(list(calls))}
        answer = self._runner.ask(do, **unstructured)
        return None if answer["wrong"] is None else (answer["at"], answer["wrong"])

    def run(self, subject: Subject, problem: Problem, kind: CallKind, only: str | None) -> Outcome:
        """Make the calls of a kind, those that `only` names, until some have gone wrong."""
        outcome = Outcome()
        calls = named_as(only, kind.of(problem))
        if kind.together and calls:
            found = self._answer("together", subject, problem, calls)
            outcome.ran = [call.name for call in calls]
            outcome.failures = [] if found is None else [(calls[found[0]].name, found[1])]
            return outcome
        for call in calls:
            if outcome.exhausted:
                outcome.left_out.append((call.name, "others had failed"))
                continue
            try:
                found = self._answer("call", subject, problem, [call])
            except MemoryError as error:
                outcome.left_out.append((call.name, str(error)))
            else:
                outcome.add(call.name, None if found is None else found[1])
        return outcome

    def _answer(self, do: str, subject: Subject, problem: Problem, calls: Sequence[Call]) -> tuple[int, str] | None:
        """As `ask`; a process that ended is what went wrong.

        MemoryError where the device need not have had the memory.
        """
        try:
            return self.ask(do, subject, calls)
        except WorkerFailed as failed:
            return 0, failure(failed, problem, calls[0].sizes, np.dtype(subject.dtype))
