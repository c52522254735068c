"""Every kind of call of the Python functions, on every target that has its device: the functions do not emulate."""

from __future__ import annotations

import pytest

from py_backends.conformance import calls
from py_backends.conformance.plugin import SELECTION, begin, finish, marked
from py_backends.conformance.running import Arenas, Runners, run_kind
from py_backends.conformance.selection import Selection, Subject
from py_backends.conformance.trials import Kind
from py_backends.number_formats import DTYPES


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each kind, dtype and source."""
    selection = metafunc.config.stash[SELECTION]
    metafunc.parametrize(
        ("kind", "dtype", "subject"),
        [
            marked(subject.text.backend, kind, dtype, subject, name=f"{subject.label}-{dtype}-{kind.name}")
            for subject in selection.subjects()
            for kind in calls.KINDS
            for dtype in DTYPES
            if selection.cases(kind, dtype, subject)
        ],
    )


def test_every_call_ends_as_it_must(
    kind: Kind[calls.Call],
    dtype: str,
    subject: Subject,
    selection: Selection,
    runners: Runners,
    arenas: Arenas,
    request: pytest.FixtureRequest,
) -> None:
    """The result is right and no input changed, or the call is refused and nothing changed."""
    runner, (tally,) = begin(request.config, subject, runners, [dtype], kind.name)
    run_kind(tally, runner, arenas, subject, kind, selection.cases(kind, dtype, subject))
    finish(request.node, subject, tally)
