"""Every kind of call of the Python functions, on every target that has its device: the functions do not emulate."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from py_backends import registry
from py_backends.conformance import calls
from py_backends.conformance.calling import Caller
from py_backends.conformance.plugin import SELECTION, able_dtypes, as_parameter, fail_if_hung, finish
from py_backends.conformance.selection import Selection, Subject, first_dtype
from py_backends.conformance.trials import DTYPES
from py_backends.contract import Target
from py_backends.harness.runner import Runner


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each kind, dtype and text."""
    selection = metafunc.config.stash[SELECTION]
    metafunc.parametrize(
        ("kind", "dtype", "subject"),
        [
            as_parameter(subject, dtype, kind)
            for subject in selection.subjects()
            for kind in selection.call_kinds()
            for dtype in DTYPES
            if _belongs(selection, kind, dtype, subject)
        ],
    )


def _belongs(selection: Selection, kind: calls.CallKind, dtype: str, subject: Subject) -> bool:
    """Whether a test belongs to this run: what is costly is tried once for a kernel and target in a quick one."""
    text, target = subject
    if target.emulated:
        return False
    if kind.costly and selection.quick and not selection.variants:
        once = next(iter(registry.kernel_texts(text.kernel, text.backend)))
        if (text.variant, dtype) != (once, first_dtype(text.backend)):
            return False
    return any(selection.case is None or selection.case in call.name for call in kind.of(text.problem))


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
    its_runner = runner(text.backend, target)
    able_dtypes(request.config, subject, its_runner, [dtype])
    outcome = Caller(its_runner).run(whose, text.problem, kind, selection.case)
    finish(request.node, outcome, subject, dtype, kind.name)
