"""Judges one source: by the conformance suite, then by a comparison beside others, and by this process's own clock."""

from __future__ import annotations

import datetime
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import py_backends
from py_backends import registry
from py_backends.commands.judge import doubts, remarks, trying, wrappers
from py_backends.commands.judge.source import THEIR_MODULE, Added, Given, named_here
from py_backends.commands.judge.trying import Outcome
from py_backends.commands.judge.watchdog import GIGABYTE, WHILE_TIMED, Watchdog, limit, watching
from py_backends.conformance.at_hand import targets_of
from py_backends.conformance.selection import Subject
from py_backends.conformance.trials import named
from py_backends.contract import KernelText, Target
from py_backends.errors import BackendUnavailable, WrongRequest
from py_backends.harness import answers, compare, sizing
from py_backends.harness.compare import Progress
from py_backends.harness.plan import Plan
from py_backends.harness.pool import check_memory
from py_backends.harness.request import Request
from py_backends.harness.roofs import SEEMS_TO_TAKE
from py_backends.harness.running_row import RunningRow
from py_backends.harness.summary import row_of
from py_backends.results.report import FAILURES, RAN, FailingCase, Judgement, Report, Row
from py_backends.results.roofline import ABOVE_ALL
from py_backends.results.spec import Sizes, Spec
from py_backends.system import machine
from py_backends.wording import in_one_line, listed
from py_backends.workers.probe import BackendTarget

_OF_ORDER = (
    "; threads that meet at a sum may lose some of it; a right source that adds up in any order says so in a comment, "
    "`Order: any`"
)
_OF_THREADS = (
    "; several threads called it at the same time: what it keeps in a `static` or global variable may be one's and "
    "another's, and a `thread_local` one is not"
)
_OF_TIME = "; it may keep results, or leave work for after the call"
_HINTS = {"same-bits": _OF_ORDER, "threads-at-once": _OF_THREADS}
"""What a kind of cases is about, for who sees its name for the first time."""
_OF_COMPILERS_CRASH = re.compile(r"; it last wrote: PLEASE submit a bug report\b.*", re.DOTALL)
"""What LLVM writes at each crash of a process that has loaded it."""
_OF_CALL = re.compile(r": nan where |\bit wrote (?:before|past) |^crashed: .*\bSIG(?:SEGV|BUS)\b")
"""What a call of wrong sizes, or a wrong launch, leads to: results that nobody wrote, and accesses beyond an array."""
_FEW_FAIL = 100
"""If fewer than one case of so many fails, it is called as it should be."""
_PART_OF_PATIENCE = 5
"""One run at the shape that was asked for may take the patience divided by this. There are one to four of them."""
_LONGER = 4
"""By so many budgets, few samples become enough for an interval."""
_USUAL = "float32"
"""The number format in which it is timed, if it has that."""


class Judging:
    """One judgement.

    target: the name of where it runs; None for the first that is there.
    dtypes: those in which it is tried; None for all that it takes.
    shapes: by kernel, the sizes at which it is timed.
    """

    def __init__(
        self,
        given: Given,
        added: Added,
        target: str | None,
        dtypes: Sequence[str] | None,
        shapes: Mapping[str, Sequence[Sizes]],
        settings: dict[str, Any],
        progress: Progress | None,
    ) -> None:
        self._given, self._text, self._shapes, self._settings = given, added.text, shapes, settings
        self._some_formats = not added.says_formats and dtypes is None
        self._progress = progress
        self._compared_for = 0.0
        self._target = _target(given.backend, target)
        self._dtypes = self._chosen(dtypes)

    def run(self, patience: float, memory: float | None) -> Report:
        """Judge it. Raises BackendUnavailable where its device computes in none of the formats.

        patience: seconds without an answer after which a case counts as hung.
        memory: gigabytes that a worker may take; None for half of what this process may use.
        """
        with watching(limit(memory)) as watchdog:
            subject = Subject(self._text, self._target, tuple(self._dtypes))
            outcome = trying.tried(subject, patience, self._say, some_formats=self._some_formats)
            if outcome.unable and not outcome.dtypes:
                raise BackendUnavailable(*outcome.unable)
            if outcome.beyond and not outcome.dtypes:
                where = f"{self._given.file} cannot be checked on {self._target.name}"
                raise WrongRequest(f"{where}: {in_their_lines(outcome.beyond, self._text, self._given.file)}")
            if outcome.failing is not None:
                return self._wrong(self._told(outcome.failing, outcome, watchdog), outcome)
            watchdog.every = WHILE_TIMED
            report = self._timed(outcome)
            wrong = self._wrong_when_timed(report, patience, outcome.remarks)
        if wrong is not None:
            wrong = self._told(wrong, outcome, watchdog)
        report.judgement = self._judgement(outcome, wrong, checked=not report.interrupted)
        return report

    def _say(self, done: float, total: float, text: str) -> None:
        if self._progress is not None:
            self._progress.update(done, total, text)

    def _chosen(self, dtypes: Sequence[str] | None) -> list[str]:
        takes = registry.dtypes(self._text, self._target)
        chosen = [each for each in takes if dtypes is None or each in dtypes]
        if not chosen:
            taken = f"takes {listed(takes)}" if takes else f"takes none of the formats of {self._given.kernel}"
            raise WrongRequest(f"{self._given.file} {taken}")
        return chosen

    def _timed(self, outcome: Outcome) -> Report:
        """A comparison of it with its model's own sources and with libraries, in one format."""
        kernel, backend = self._given.kernel, self._given.backend
        dtype = _USUAL if _USUAL in outcome.dtypes else outcome.dtypes[0]
        libraries = [each for each in registry.backend_names() if registry.backend(each).library]
        names = [backend, *(each for each in libraries if each != backend)]
        variants = [self._text.variant, "tuned", "lecture"]
        request = Request([kernel], names, None, variants, (dtype,), self._shapes)

        def specs(found: Sequence[BackendTarget]) -> list[Spec]:
            return self._beside(request.specs(found), found)

        begin = perf_counter()
        report = compare.run(Plan.of(request, specs), self._settings, self._progress)
        self._compared_for = perf_counter() - begin
        return report

    def _beside(self, specs: Sequence[Spec], found: Sequence[BackendTarget]) -> list[Spec]:
        """Of all specs, those of its target and of the first one of each library, as far as they have the source.

        Where it is emulated, its model's own sources are left out: they compile for seconds, and have no time.
        """
        first = {self._text.backend: self._target.name}
        for backend, target in found:
            if target.available:
                first.setdefault(backend, target.name)
        return [
            spec
            for spec in specs
            if first.get(spec.backend) == spec.target
            and spec.variant in registry.kernel_texts(spec.kernel, spec.backend)
            and (spec.variant == self._text.variant or spec.backend != self._text.backend or not self._target.emulated)
        ]

    def _wrong_when_timed(self, report: Report, patience: float, remarks: list[str]) -> FailingCase | None:
        """What is wrong at a timed shape, or at one that was asked for, or with its times.

        None where nothing is, or where nobody has looked. Of shapes that cannot be tried it adds remarks.
        """
        for at, row in enumerate(report.rows):
            if row.variant != self._text.variant:
                continue
            status, reason, sizes = row.status, row.reason, tuple(row.shape.values())
            if status not in FAILURES and not report.interrupted:
                if doubt := self._doubt(row, patience, remarks):
                    status, reason, sizes = doubt
                    where = "" if sizes == tuple(row.shape.values()) else f", at {named(sizes)}"
                    report.rows[at] = replace(row, status=status, reason=reason + where)
                self._refuse_what_nobody_believes(report.rows[at])
            if status in FAILURES:
                seed = str(self._settings["seed"])
                return FailingCase("compare", seed, row.dtype, list(sizes), reason or status)
        return None

    def _refuse_what_nobody_believes(self, row: Row) -> None:
        """Raises WrongRequest for a time above the ceiling, which is a fault or chance: few samples do not tell."""
        if row.status == "ok" and ABOVE_ALL in (row.note or ""):
            longer = f"give a longer --budget, such as {_LONGER * self._settings['budget_seconds']:g}"
            raise WrongRequest(f"{self._given.file} is not judged: {ABOVE_ALL}: {longer}")

    def _doubt(self, row: Row, patience: float, remarks: list[str]) -> doubts.Doubt | None:
        """What is wrong with the times of a row, or at the shape that was asked for, if that can be tried."""
        timed = tuple(row.shape.values()) if row.status == "ok" else None
        asked, why_not = tuple(row.asked.values()), self._why_not_tried(row, patience)
        threads, seed = self._settings["threads"], self._settings["seed"]
        checked = timed if why_not else asked
        found: doubts.Doubt | None = None
        try:
            found = doubts.doubt(
                self._text, self._target, row.dtype, timed, checked, threads, seed, patience, self._compared_for
            )
        except MemoryError as error:
            why_not = str(error)
        if found is not None and found.status not in FAILURES:  # what its device lacks is no fault of it
            why_not = found.reason
            found = None
        if why_not and (row.requested or row.status not in RAN):
            remarks.append(f"not tried at {named(asked)}: {why_not}")
        return found

    def _why_not_tried(self, row: Row, patience: float) -> str | None:
        """Why a launch at the shape that was asked for is too much, with what to do; None where it is not."""
        seconds = row.estimated_seconds
        if seconds is None:
            return row.reason
        if seconds > patience / _PART_OF_PATIENCE:
            longer = f"give a longer --patience, such as {math.ceil(1.2 * _PART_OF_PATIENCE * seconds)}"
            return f"one run there would take {sizing.in_words(seconds)}; {longer}"
        if answers.TOO_LONG in (row.note or ""):
            return "its right answer there takes too long"
        try:
            check_memory(self._text.problem, tuple(row.asked.values()), np.dtype(row.dtype))
        except MemoryError as error:
            return str(error)
        return None

    def _wrong(self, failing: FailingCase, outcome: Outcome) -> Report:
        """The results of a source that is not timed, since it is wrong."""
        sizes = tuple(failing.sizes or self._text.problem.default_sizes)
        names = self._given.kernel, self._given.backend, self._target.name, self._text.variant, failing.dtype
        row = RunningRow(Spec(*names, sizes), self._target, self._text, sizes=sizes)
        row.status, row.reason = _status(failing), failing.reason
        return Report(
            created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            package_version=py_backends.__version__,
            machine=machine.describe(),
            settings=self._settings,
            rows=[row_of(row)],
            judgement=self._judgement(outcome, failing),
        )

    def _told(self, failing: FailingCase, outcome: Outcome, watchdog: Watchdog) -> FailingCase:
        """The failing case with a reason for readers: a worker's end for its memory, and files without our folders."""
        if watchdog.killed and "SIGKILL" in failing.reason:
            limit = f"crashed: it took more than {watchdog.most / GIGABYTE:.3g} GB of memory, and was ended"
            return replace(failing, reason=limit)
        reason = in_their_lines(failing.reason, self._text, self._given.file)
        hint = _HINTS.get(failing.kind, _OF_TIME if SEEMS_TO_TAKE in reason else "")
        said = self._given.call if outcome.failed * _FEW_FAIL > outcome.cases else None
        told = for_an_author(reason, said, emulated=self._target.emulated)
        return replace(failing, reason=told + hint)

    def _judgement(self, outcome: Outcome, failing: FailingCase | None, *, checked: bool = True) -> Judgement:
        source = self._given.file.read_text(encoding="utf-8", errors="replace")
        return Judgement(
            str(self._given.file),
            self._given.kernel,
            self._given.backend,
            self._target.name,
            self._text.variant,
            failing is None and checked,
            outcome.dtypes,
            outcome.cases,
            len(outcome.kinds),
            outcome.failed,
            failing,
            [*outcome.remarks, *remarks.remarks(self._text, source, emulated=self._target.emulated)],
        )


def _target(backend: str, name: str | None) -> Target:
    """Where a backend runs. Raises WrongRequest for an unknown name, BackendUnavailable where it is not there."""
    every = targets_of(backend)
    if name is not None:
        registry.known(name, [each.name for each in every], "target")
        every = [each for each in every if each.name == name]
    found = next((each for each in every if each.available), every[0])
    if not found.available:
        raise BackendUnavailable(found.reason or "", found.fix)
    return found


def _status(failing: FailingCase) -> str:
    """The status of a row that has this fault."""
    status = failing.reason.partition(":")[0]
    return status if status in FAILURES else "mismatch"


def for_an_author(reason: str, said: str | None, *, emulated: bool) -> str:
    """What is wrong, and that it may be the call, where a result was not written, or something else was.

    said: how the source is called, if a comment or an option says so.
    emulated: whether its device is. A crash there looks like one of the compiler, which asks for a report.
    """
    crash = f"; the {'emulation' if emulated else 'device'}'s compiler crashed: the launch may not fit the kernel"
    reason = _OF_COMPILERS_CRASH.sub(crash, reason)
    return f"{reason}; or its call is not right: {in_one_line(said)}" if said and _OF_CALL.search(reason) else reason


def in_their_lines(reason: str, text: KernelText, file: Path) -> str:
    """What a compiler says, with the places in the file that was given, and not in what is made of it.

    SYCL's counts the lines of the whole, whatever `#line` says.
    """
    reason = reason.replace(f"{text.path.parent}{os.sep}", "")
    reason = reason.replace(named_here(file), file.name).replace(f"{THEIR_MODULE}.py", file.name)
    before, begun, _ = text.text.partition(wrappers.begin(file.name))
    if named_here(file) in text.text or THEIR_MODULE in text.text:  # it lies beside the wrapper
        return reason
    first = before.count("\n") + 1 if begun else 0  # a file in this project's form is copied as it is

    def theirs(place: re.Match[str]) -> str:
        line = int(place[1]) - first
        return f"{file.name}:{line}" if line > 0 else place[0]

    return re.sub(rf"(?:\./)?\b{re.escape(text.path.name)}:(\d+)", theirs, reason)
