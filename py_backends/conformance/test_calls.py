"""Every kind of call of the Python functions, on every target that has its device: the functions do not emulate."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from py_backends._contract import Target
from py_backends.conformance import calls
from py_backends.conformance.calling import Caller
from py_backends.conformance.plugin import SELECTION, as_parameter, fail_if_hung, finish, skip_where_unavailable
from py_backends.conformance.selection import DTYPES, Selection, Subject
from py_backends.harness.runner import Runner
from py_backends.harness.workers import WorkerFailed


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each kind, dtype and text."""
    selection = metafunc.config.stash[SELECTION]
    subjects = [subject for subject in selection.subjects() if not subject.target.emulated]
    metafunc.parametrize(
        ("kind", "dtype", "subject"),
        [
            as_parameter(subject, dtype, kind)
            for subject in subjects
            for kind in selection.call_kinds()
            for dtype in (DTYPES[:1] if kind.costly and selection.quick else DTYPES)
            if any(selection.case is None or selection.case in call.name for call in kind.calls(subject.text.problem))
        ],
    )


def test_every_call_ends_as_it_must(
    kind: calls.CallKind,
    dtype: str,
    subject: Subject,
    selection: Selection,
    runner: Callable[[str, Target], Runner],
    request: pytest.FixtureRequest,
) -> None:
    """The result is right and no input changed, or the call is refused and nothing changed."""
    fail_if_hung(request.config, subject)
    text, target = subject
    whose = calls.Subject(text.kernel, text.variant, text.backend, target.name, dtype)
    try:
        outcome = Caller(runner(text.backend, target)).run(whose, text.problem, kind, selection.case)
    except WorkerFailed as failed:
        skip_where_unavailable(text.backend, failed)
        raise
    finish(request.node, outcome, subject, dtype, kind.name)
