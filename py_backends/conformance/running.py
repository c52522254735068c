"""Runs cases in workers, one for each (backend, target), and says what did not hold."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import msgspec
import numpy as np

from py_backends import registry
from py_backends.conformance import calls
from py_backends.conformance.calls import THREADS, Call
from py_backends.conformance.formats import limits
from py_backends.conformance.selection import Subject
from py_backends.conformance.tally import PREPARE, REFERENCE, Tally
from py_backends.conformance.trials import (
    OWN_INPUTS,
    SUBNORMALS,
    Answered,
    AnyCase,
    Kind,
    Trial,
    answered,
    has_own_draw,
)
from py_backends.contract import Array, Problem
from py_backends.errors import BrokenKernel
from py_backends.kernel_text import KernelText
from py_backends.results.check import STILL_CHANGING, check_outputs, first_wrong
from py_backends.results.nearly_right import leave_nearly_right
from py_backends.system import machine
from py_backends.system.bits import same_bits
from py_backends.workers.arena import Arena, span
from py_backends.workers.process import WorkerFailed
from py_backends.workers.runner import Runner

_MODULE = "py_backends.conformance.caller"
"""The module that the workers run."""
_SMALL_ARENA = 2**26
_ANY_DEVICE_HOLDS = 2**20
"""Bytes of a case's arrays that a device must have memory for."""
_COPIES = 8
"""The most bytes for a case's arrays: inputs, reference, its parts, and the arena."""


class Runners:
    """Gives everybody the one runner of a (backend, target).

    Some backends compile for seconds, on one core. Others run meanwhile.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._runners: dict[tuple[str, str], Runner] = {}
        self._compiling: dict[Runner, Future[None]] = {}
        self._pool = ThreadPoolExecutor(machine.cpus(), "py-backends-compiling")

    def compile(self, subjects: Iterable[Subject]) -> None:
        """Begin to compile the sources that take long, one after the other for each target."""
        late: dict[Runner, dict[str, Subject]] = {}
        for subject in subjects:
            if subject.target.just_in_time:
                late.setdefault(self._runner(subject), {})[subject.label] = subject
        for runner, of_runner in late.items():
            self._compiling[runner] = self._pool.submit(_compile, runner, list(of_runner.values()))

    def get(self, subject: Subject) -> Runner:
        """The runner of a source, once nobody else uses it."""
        runner = self._runner(subject)
        if compiling := self._compiling.get(runner):
            compiling.result()
        return runner

    def close(self) -> None:
        """End all workers."""
        self._pool.shutdown(cancel_futures=True)
        for runner in self._runners.values():
            runner.close()

    def _runner(self, subject: Subject) -> Runner:
        backend, target = subject.text.backend, subject.target
        if (backend, target.name) not in self._runners:
            self._runners[backend, target.name] = Runner(
                backend, target, machine.cpus(), patience=self._patience, module=_MODULE, stopped_between=False
            )
        return self._runners[backend, target.name]


def _compile(runner: Runner, subjects: Sequence[Subject]) -> None:
    for subject in subjects:
        for dtype in subject.dtypes:
            with contextlib.suppress(WorkerFailed):  # whoever needs it will see the same error
                runner.compile(subject.text, np.dtype(dtype))


def run_cases(tally: Tally, problem: Problem, cases: Iterable[AnyCase], run: Callable[[AnyCase], str | None]) -> None:
    """Run cases until some have failed, and count them.

    run: says what is wrong, or None; WorkerFailed and MemoryError as `run_call` and `Arenas.run` raise them.

    Raises BrokenKernel as they do, since then no other case has a right answer either.
    """
    for case in cases:
        if tally.exhausted:
            tally.left_out.append((case.name, "others had failed"))
            continue
        try:
            wrong = run(case)
        except WorkerFailed as failed:
            if failed.status == "skipped" and problem.bytes(case.sizes, np.dtype(tally.dtype)) > _ANY_DEVICE_HOLDS:
                tally.left_out.append((case.name, failed.reason))
                continue
            wrong = told(failed)
        except MemoryError as error:
            tally.left_out.append((case.name, str(error)))
            continue
        tally.add(case.name, wrong)


def told(failed: WorkerFailed) -> str:
    """What is wrong with a case that ended its worker, or left no result."""
    return f"{failed.status}: {failed.reason}"


def run_call(runner: Runner, text: KernelText, dtype: str, call: Call) -> str | None:
    """Make a call. Returns what is wrong, or None.

    Raises WorkerFailed if the worker has no answer, and BrokenKernel if a plug-in's problem has none.
    """
    wrong: str | None = _make(runner, text, dtype, [call])["wrong"]
    return wrong


def run_kind(
    tally: Tally, runner: Runner, arenas: Arenas, subject: Subject, kind: Kind[Any], cases: Sequence[Any]
) -> None:
    """Run cases of a kind, whether these are trials or calls, and count them.

    If the problem is broken, count that alone.
    """
    try:
        _run_kind(tally, runner, arenas, subject, kind, cases)
    except BrokenKernel as broken:
        tally.add(REFERENCE, broken.reason)


def _run_kind(
    tally: Tally, runner: Runner, arenas: Arenas, subject: Subject, kind: Kind[Any], cases: Sequence[Any]
) -> None:
    if kind.name == SUBNORMALS and not subject.target.subnormals:
        tally.left_out.append(("all of it", "it takes subnormal numbers for zero"))
    elif kind in calls.KINDS:
        _run_calls(tally, runner, subject.text, kind, cases)
    else:
        _run_trials(tally, runner, arenas, subject.text, kind, cases)


def _run_calls(tally: Tally, runner: Runner, text: KernelText, kind: Kind[Call], every: Sequence[Call]) -> None:
    """Make calls. Of those made together, only the first wrong one is reported."""
    if not kind.together:
        run_cases(tally, text.problem, every, partial(run_call, runner, text, tally.dtype))
        return
    try:
        answer = _make(runner, text, tally.dtype, every, THREADS)
    except WorkerFailed as failed:
        answer = {"at": 0, "wrong": told(failed)}
    for at, call in enumerate(every):
        tally.add(call.name, answer["wrong"] if at == answer["at"] else None)


def _make(runner: Runner, text: KernelText, dtype: str, every: Sequence[Call], threads: int = 1) -> dict[str, Any]:
    """Have the worker make calls: `Caller.call`."""
    what = {"kernel": text.kernel, "variant": text.variant, "dtype": dtype, "threads": threads}
    answer = runner.ask("call", **what, calls=msgspec.to_builtins(list(every)))
    if "broken" in answer:
        raise BrokenKernel(answer["broken"], answer["fix"])
    return answer


class Arenas:
    """The memory of all trials: one arena for the small ones, and one for each trial that does not fit there."""

    def __init__(self) -> None:
        self._small: dict[tuple[int, int], Arena] = {}

    def run(self, runner: Runner, text: KernelText, case: Answered, *, again: bool = False) -> str | None:
        """Put a trial into an arena, run it, and judge its result. Returns what is wrong, or None.

        again: whether it runs twice, and has to leave the same bits.

        Raises WorkerFailed if its worker has no result, and MemoryError if this machine has too little memory.
        """
        problem, trial = text.problem, case.trial
        with self._arena(runner, problem, trial, case.dtype) as arena:
            for place, array in zip(arena.inputs, case.inputs, strict=True):
                place[...] = array.reshape(-1)
            if trial.begun:
                leave_nearly_right(arena.outputs, case.references, np.random.default_rng(list(trial.name.encode())))
            changed = runner.run(text, arena)
            found = arena.outputs if runner.target.subnormals else _without_flushes(arena.outputs, case)
            wrong = arena.trespass() or changed or verdict(found, case, problem.rule)
            if not again or wrong is not None:
                return wrong
            first = [output.copy() for output in arena.outputs]
            arena.poison()
            changed = runner.run(text, arena)
            others = (_other_bits(*each) for each in zip(first, arena.outputs, strict=True))
            return arena.trespass() or changed or next(filter(None, others), None)

    @contextlib.contextmanager
    def _arena(self, runner: Runner, problem: Problem, trial: Trial, dtype: np.dtype[Any]) -> Iterator[Arena]:
        """An arena with room for a trial. A large one is freed afterwards."""
        shapes, dtypes = problem.shapes(trial.sizes), problem.array_dtypes(dtype)
        most = max(math.prod(shape) for shape in shapes)
        needed = max(span(most, trial.sizes, each, start).end for start in trial.starts for each in dtypes)
        small = needed <= _SMALL_ARENA
        if small:
            key = len(shapes), problem.outputs  # a worker maps outputs otherwise than inputs
            arena = self._small.get(key) or Arena([_SMALL_ARENA] * len(shapes))
            self._small[key] = arena
        elif needed * _COPIES > machine.free_memory():
            raise MemoryError(f"it needs {needed * _COPIES / 2**30:.1f} GiB, which are not free")
        else:
            arena = Arena([needed] * len(shapes))
        arena.place(trial.sizes, dtype, shapes, trial.starts, dtypes=dtypes, outputs=problem.outputs, bare=trial.bare)
        try:
            yield arena
        finally:
            if not small:
                runner.unload(arena)
                arena.close()

    def close(self) -> None:
        """Give the memory back."""
        for arena in self._small.values():
            arena.close()


def _run_trials(
    tally: Tally, runner: Runner, arenas: Arenas, text: KernelText, kind: Kind[Trial], trials: Sequence[Trial]
) -> None:
    """Run trials. If the source is broken, count that alone."""
    try:
        answers = answered(text.kernel, tally.dtype, tuple(trials))
        compiled = runner.compile(text, np.dtype(tally.dtype))
    except WorkerFailed as failed:
        tally.add(PREPARE, told(failed))
    else:
        again = kind.again and compiled.deterministic
        others = kind.name != OWN_INPUTS and registry.kernel_plugin(text.kernel) and has_own_draw(text.problem)

        def run(trial: Trial) -> str | None:
            wrong = arenas.run(runner, text, answers[trial], again=again)
            of_numbers = wrong is not None and " is right" in wrong
            return f"{wrong}; its inputs have any values, not those of draw" if of_numbers and others else wrong

        run_cases(tally, text.problem, trials, run)


def _without_flushes(outputs: Sequence[Array], case: Answered) -> list[Array]:
    """Results with the right numbers in place of the zeros that a target without subnormal numbers may leave."""
    made = []
    for output, reference in zip(outputs, case.references, strict=True):
        with np.errstate(invalid="ignore"):  # NaN compares
            flushed = (output == 0) & (np.abs(reference.value) < limits(output.dtype).normal)
        made.append(np.where(flushed, reference.value, output).astype(output.dtype))
    return made


def verdict(outputs: Sequence[Array], case: Answered, rule: str) -> str | None:
    """What is wrong with results; None where nothing is."""
    if not case.trial.exact:
        return check_outputs(outputs, case.references, rule).reason
    for output, reference in zip(outputs, case.references, strict=True):
        right = output == reference.value  # 0 and -0 are the same number
        if not right.all():
            wrong = f"{first_wrong(right, output, reference.value, 17)}, which is exact in any order"
            return STILL_CHANGING if ((output == reference.value) != right).any() else wrong
    return None


def _other_bits(first: Array, second: Array) -> str | None:
    same = same_bits(first, second)
    if same.all():
        return None
    wrong = first_wrong(same, second, first, 17).replace("is right", "was before")
    return f"{wrong}, and it says that it is deterministic"
