"""The conformance suite's quick run on one source, in this process's workers, and the smallest case that fails."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

import numpy as np

from py_backends.commands.judge import nvrtc
from py_backends.conformance import calls
from py_backends.conformance.running import Arenas, Runners, run_kind, told
from py_backends.conformance.selection import Extent, Selection, Subject, all_kinds_of
from py_backends.conformance.sizes import fits
from py_backends.conformance.tally import DEPENDING, PREPARE, REFERENCE, Tally
from py_backends.conformance.trials import Kind, Trial, answer, named
from py_backends.errors import BrokenKernel, WrongRequest
from py_backends.results.check import STILL_CHANGING
from py_backends.results.report import FailingCase
from py_backends.results.spec import Sizes
from py_backends.wording import listed
from py_backends.workers.process import WorkerFailed
from py_backends.workers.runner import Runner

_SHRINKS_FOR = 10.0
"""Seconds."""
_MOST_TRIES = 200
_MOST_FAILING_KINDS = 5
"""So many tell that a source is wrong, and have a small case."""
_ENDS = ("crashed: ", "error: ", "timeout: ")
"""How reasons begin where a worker has ended."""
_NOT_HERE = re.compile(
    r"ModuleNotFoundError: No module named '(?P<module>[^']+)'"
    r"|fatal error: '?(?P<header>[^\s':]+)'?(?:: No such file or directory| file not found)"
)
"""What Python says of a module, and compilers of a header, that a source needs and this machine lacks."""
Say = Callable[[float, float, str], None]
"""Shows progress: so much of so much, and what it is about."""


@dataclass
class Outcome:
    """What the suite says of one source.

    dtypes: the number formats in which it was tried.
    cases, kinds: how many ran, and which.
    failed: how many do not hold. A kind is left after three.
    failing: the smallest case that fails; None where all hold.
    unable: why it does not run in any format here, with the fix; None where it does.
    beyond: what it needs that is not here, and how that showed, where it does not compile for that; else None.
    remarks: sentences on formats that were left out.
    """

    dtypes: list[str] = field(default_factory=list)
    cases: int = 0
    kinds: set[str] = field(default_factory=set)
    failed: int = 0
    failing: FailingCase | None = None
    unable: tuple[str, str | None] | None = None
    beyond: str | None = None
    remarks: list[str] = field(default_factory=list)


def tried(subject: Subject, patience: float, say: Say, *, some_formats: bool) -> Outcome:
    """Try a source on a target by every case of a quick run but the drawn ones.

    patience: seconds without an answer after which a case counts as hung.
    some_formats: whether it may be one of some formats alone, and is right if it does not compile in others.

    Raises WrongRequest where the kernel itself is broken.
    """
    text, target = subject.text, subject.target
    selection = Selection((text.backend,), (target.name,), (text.kernel,), (text.variant,), extent=Extent.QUICK)
    with closing(Runners(patience)) as runners, closing(Arenas()) as arenas:
        trying = _Trying(selection, subject, runners.get(subject), arenas, say, patience)
        return trying.run(trying.without_those_that_do_not_compile() if some_formats else subject.dtypes)


class _Trying:
    """One run of all kinds in all formats."""

    def __init__(
        self, selection: Selection, subject: Subject, runner: Runner, arenas: Arenas, say: Say, patience: float
    ) -> None:
        self._selection, self._subject, self._runner = selection, subject, runner
        self._arenas, self._say, self._patience = arenas, say, patience
        self._wrong: list[tuple[Tally, Any, str]] = []

    def without_those_that_do_not_compile(self) -> list[str]:
        """The formats in which the source compiles, all where it does in none."""
        compiling = [each for each in self._subject.dtypes if self._compiles(each)]
        return compiling or list(self._subject.dtypes)

    def _compiles(self, dtype: str) -> bool:
        try:
            self._runner.compile(self._subject.text, np.dtype(dtype))
        except WorkerFailed as failed:
            return failed.status == "unavailable"
        return True

    def run(self, dtypes: Sequence[str]) -> Outcome:
        """Try it in these formats."""
        outcome = Outcome()
        if left_out := [each for each in self._subject.dtypes if each not in dtypes]:
            outcome.remarks.append(f"it does not compile in {listed(left_out)}, in which it was not tried")
        text = self._subject.text
        every: list[Kind[Any]] = [*all_kinds_of(text.kernel), *calls.KINDS]
        for dtype in dtypes:
            if not self._is_able(dtype, outcome):
                continue
            outcome.dtypes.append(dtype)
            for at, kind in enumerate(every):
                self._say(at, len(every), f"{text.kernel} {dtype}: {kind.name}")
                if not self._try(kind, dtype, outcome):
                    return self._found(outcome)
        return self._found(outcome)

    def _found(self, outcome: Outcome) -> Outcome:
        if self._wrong:
            outcome.unable, outcome.beyond, outcome.failing = None, None, self._smallest()
            outcome.failed = len(self._wrong)
        return outcome

    def _is_able(self, dtype: str, outcome: Outcome) -> bool:
        """Whether the source can be prepared in a format. What a device lacks is no fault of it."""
        try:
            self._runner.compile(self._subject.text, np.dtype(dtype))
        except WorkerFailed as failed:
            if failed.status == "unavailable":
                outcome.unable = failed.reason, failed.fix
            elif lacking := self._lacking(failed, dtype):
                outcome.beyond = lacking
            else:
                hint = nvrtc.hint(self._subject.text, self._subject.target, dtype, self._patience)
                reason = told(failed) + hint
                self._wrong.append((self._tally(dtype, PREPARE), None, reason))
            return False
        return True

    def _lacking(self, failed: WorkerFailed, dtype: str) -> str | None:
        """What the source needs that is not here, if its compiler says that something is wrong, and does not hang."""
        if failed.status != "error":
            return None
        if missing := _NOT_HERE.search(failed.reason):
            return f"it needs {missing['module'] or missing['header']}, which is not here"
        beyond = nvrtc.beyond(self._subject.text, self._subject.target, dtype, self._patience)
        return beyond and f"{beyond}: {failed.reason}"

    def _tally(self, dtype: str, kind: str) -> Tally:
        text, target = self._subject.text, self._subject.target
        return Tally(text.backend, target.name, text.kernel, text.variant, dtype, kind)

    def _try(self, kind: Kind[Any], dtype: str, outcome: Outcome) -> bool:
        """Try a kind. Returns whether to go on.

        It does not where a case ends its worker, since each further one would start another.
        """
        cases = self._selection.cases(kind, dtype, self._subject)
        if not cases:
            return True
        tally = self._tally(dtype, kind.name)
        run_kind(tally, self._runner, self._arenas, self._subject, kind, cases)
        outcome.cases += tally.cases
        outcome.kinds.add(kind.name)
        if broken := next((reason for name, reason in tally.failures if name == REFERENCE), None):
            raise WrongRequest(broken)
        by_name = {case.name: case for case in cases}
        self._wrong += [(tally, by_name.get(name), reason) for name, reason in tally.failures]
        failing = {(each.dtype, each.kind) for each, _, _ in self._wrong}
        ended = any(_is_end(reason) for _, reason in tally.failures)
        return not ended and len(failing) < _MOST_FAILING_KINDS

    def _smallest(self) -> FailingCase:
        """The smallest failing case, made smaller where it fails alone.

        Where an output was still changing, cases after that may be wrong by the same work.
        """

        def size(wrong: tuple[Tally, Any, str]) -> tuple[bool, bool, float]:
            tally, case, reason = wrong
            dimensions = len(self._subject.text.problem.dimensions)
            return (
                STILL_CHANGING not in reason,
                tally.kind in DEPENDING,
                math.prod(case.sizes[:dimensions]) if case else -1,
            )

        tally, case, reason = min(self._wrong, key=size)
        alone = tally.kind not in DEPENDING and STILL_CHANGING not in reason
        if isinstance(case, Trial) and alone and not _is_end(reason):
            case, reason = self._shrunk(case, reason, np.dtype(tally.dtype))
        name, sizes = (case.name, list(case.sizes)) if case else ("", [])
        return FailingCase(tally.kind, name, tally.dtype, sizes, reason)

    def _shrunk(self, trial: Trial, reason: str, dtype: np.dtype[Any]) -> tuple[Trial, str]:
        """A trial of smaller sizes that fails, too, and how."""
        deadline, tries = monotonic() + _SHRINKS_FOR, 0
        smaller = self._smaller(trial)
        while tries < _MOST_TRIES and monotonic() < deadline and (candidate := next(smaller, None)):
            tries += 1
            if (wrong := self._wrong_with(candidate, dtype)) is not None:
                trial, reason = candidate, wrong
                smaller = iter(()) if _is_end(wrong) else self._smaller(trial)
        return trial, reason

    def _wrong_with(self, trial: Trial, dtype: np.dtype[Any]) -> str | None:
        """What is wrong with a trial, if anything."""
        text = self._subject.text
        try:
            return self._arenas.run(self._runner, text, answer(text.problem, trial, dtype))
        except WorkerFailed as failed:
            return told(failed)
        except (MemoryError, BrokenKernel, ValueError, IndexError):  # what draws its inputs needs more room
            return None

    def _smaller(self, trial: Trial) -> Iterator[Trial]:
        """Trials of the same kind, in which one size is smaller."""
        problem = self._subject.text.problem
        for at in range(len(problem.dimensions)):
            now = trial.sizes[at]
            for size in dict.fromkeys((1, now // 2, now - 1)):
                sizes: Sizes = (*trial.sizes[:at], size, *trial.sizes[at + 1 :])
                if 0 < size < now and fits(problem, sizes[: len(problem.dimensions)]):
                    name = trial.name.replace(named(trial.sizes), named(sizes))
                    yield replace(trial, name=name, sizes=sizes)


def _is_end(reason: str) -> bool:
    """Whether a case ended its worker, so that the next one starts another, or waits as long."""
    return reason.startswith(_ENDS)
