"""Every case of every kind, through a worker: the result is right, and nothing else was written."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from py_backends.conformance.plugin import SELECTION, able_dtypes, as_parameter, fail_if_hung, finish, marked
from py_backends.conformance.running import Arenas, Outcome, run_kind
from py_backends.conformance.selection import Selection, Subject, first_dtype
from py_backends.conformance.tally import PREPARE, REFERENCE
from py_backends.conformance.trials import DTYPES, Kind, Trial, chosen, named_as, prepared
from py_backends.contract import Target
from py_backends.errors import BrokenKernel
from py_backends.harness.runner import Runner
from py_backends.harness.workers import WorkerFailed


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each kind, dtype and text; those that share inputs follow each other."""
    selection = metafunc.config.stash[SELECTION]
    if "kind" not in metafunc.fixturenames:
        metafunc.parametrize(("backend", "target"), [marked(*each) for each in selection.at_hand()])
        return
    subjects = list(selection.subjects())
    metafunc.parametrize(
        ("kind", "dtype", "subject"),
        [
            as_parameter(subject, dtype, kind)
            for kernel in dict.fromkeys(subject.text.kernel for subject in subjects)
            for kind in selection.kinds_of(kernel)
            for dtype in DTYPES
            for subject in subjects
            if subject.text.kernel == kernel and _cases(selection, kind, dtype, subject)
        ],
    )


def _cases(selection: Selection, kind: Kind, dtype: str, subject: Subject) -> list[Trial]:
    """The cases of a kind that belong to this run."""
    if (subject.text.variant == "lecture" and not kind.lecture) or (subject.target.emulated and not kind.emulated):
        return []
    extent = selection.extent(subject.target)
    if extent == "quick interpreted" and kind.in_one_dtype and dtype != first_dtype(subject.text.backend):
        return []
    trials = chosen(kind, subject.text.kernel, dtype, extent)
    return [trial for trial in trials if selection.case is None or selection.case in trial.name]


def test_it_is_there(backend: str, target: Target) -> None:
    """A backend that is not gives its reason here."""
    assert target.available, backend


def test_every_case_holds(
    kind: Kind,
    dtype: str,
    subject: Subject,
    selection: Selection,
    runner: Callable[[str, Target], Runner],
    arenas: Arenas,
    request: pytest.FixtureRequest,
) -> None:
    """The result is within its bound, or exact where it has to be, and memory around all arrays is as it was."""
    fail_if_hung(request.config, subject)
    text, target = subject
    its_runner = runner(text.backend, target)
    able_dtypes(request.config, subject, its_runner, [dtype])
    outcome = Outcome()
    try:
        cases = prepared(kind, text.kernel, dtype, selection.extent(target))
        compiled = its_runner.compile(text, np.dtype(dtype))
    except BrokenKernel as broken:
        outcome.add(REFERENCE, broken.reason)
    except WorkerFailed as failed:
        outcome.add(PREPARE, f"{failed.status}: {failed.reason}")
    else:
        cases = named_as(selection.case, cases)
        outcome = run_kind(its_runner, text, kind, cases, arenas, deterministic=compiled.deterministic)
    finish(request.node, outcome, subject, dtype, kind.name)
