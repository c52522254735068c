"""Every case of every kind, through a worker: the result is right, and nothing else was written."""

from __future__ import annotations

import pytest

from py_backends.conformance.any_kernel import refusal
from py_backends.conformance.plugin import SELECTION, begin, finish, marked
from py_backends.conformance.running import Arenas, Runners, run_kind
from py_backends.conformance.selection import Selection, Subject, all_kinds_of
from py_backends.conformance.tally import SIZES, Tally
from py_backends.conformance.trials import Kind, Trial
from py_backends.contract import Target
from py_backends.number_formats import DTYPES


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each kind, dtype and source. Those that share inputs follow each other."""
    selection = metafunc.config.stash[SELECTION]
    if "target" in metafunc.fixturenames:
        places = [marked(name, name, target, name=f"{name}-{target.name}") for name, target in selection.at_hand()]
        metafunc.parametrize(("backend", "target"), places)
        return
    subjects = list(selection.subjects())
    if "kind" not in metafunc.fixturenames:
        refused = {each.text.kernel: each for each in subjects if refusal(each.text.kernel) is not None}
        metafunc.parametrize(
            "subject", [marked(each.text.backend, each, name=kernel) for kernel, each in refused.items()]
        )
        return
    metafunc.parametrize(
        ("kind", "dtype", "subject"),
        [
            marked(subject.text.backend, kind, dtype, subject, name=f"{subject.label}-{dtype}-{kind.name}")
            for kernel in dict.fromkeys(subject.text.kernel for subject in subjects)
            for kind in all_kinds_of(kernel)
            for dtype in DTYPES
            for subject in subjects
            if subject.text.kernel == kernel and selection.cases(kind, dtype, subject)
        ],
    )


def test_it_is_there(backend: str, target: Target, selection: Selection) -> None:
    """A backend that is missing gives its reason here. A target that was named, and has sources, takes some dtype.

    So does some target of a backend that was named.
    """
    assert target.available, backend
    texts, targets = selection.texts(backend), [target]
    if target.name not in selection.targets and backend in selection.backends:
        targets = [each for name, each in selection.at_hand() if name == backend and each.available]
    named = target.name in selection.targets or backend in selection.backends
    if named and texts and not any(Subject(text, each).dtypes for text in texts for each in targets):
        pytest.fail(f"{backend} {target.name} takes no dtype of what was chosen", pytrace=False)


def test_some_sizes_are_tried(subject: Subject, request: pytest.FixtureRequest) -> None:
    """A kernel whose `shapes` takes none of them fails here, once, and has no other test."""
    text = subject.text
    tally = Tally(text.backend, subject.target.name, text.kernel, text.variant, subject.dtypes[0], "shapes")
    tally.add(SIZES, refusal(text.kernel))
    finish(request.node, subject, tally)


def test_every_case_holds(
    kind: Kind[Trial],
    dtype: str,
    subject: Subject,
    selection: Selection,
    runners: Runners,
    arenas: Arenas,
    request: pytest.FixtureRequest,
) -> None:
    """The result is within its bound, or exact where it has to be, and memory around all arrays is as it was."""
    runner, (tally,) = begin(request.config, subject, runners, [dtype], kind.name)
    run_kind(tally, runner, arenas, subject, kind, selection.cases(kind, dtype, subject))
    finish(request.node, subject, tally)
