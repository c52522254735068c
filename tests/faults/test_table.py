"""The table of faults: every fault has its place, its name and those who must see it.

Planting takes minutes and is not done for every change. A change that moves the code moves its fault.
"""

from __future__ import annotations

from operator import attrgetter

import pytest

from py_backends import registry

from . import backend, seen, table
from .table import CLONE, Change


@pytest.mark.parametrize("fault", table.changes(), ids=attrgetter("name"))
def test_what_a_fault_changes_is_there(fault: Change) -> None:
    assert fault.planted() != (CLONE / fault.where).read_text(encoding="utf-8")
    if fault.where.startswith("kernels/"):
        assert fault.text.backend in registry.backend_names()


def test_names_are_distinct() -> None:
    assert len({fault.name for fault in table.changes()}) == len(table.changes())
    assert len(table.every()) > len(table.changes())


def test_the_tests_that_must_see_faults_are_there() -> None:
    asked = {test for fault in table.every().values() for test in fault.tests}
    there = {path.stem.removeprefix("test_") for path in (CLONE / "tests").rglob("*.py")}
    assert asked <= there


def test_every_wrong_backend_has_somebody_who_must_see_it() -> None:
    asked = {name.removesuffix(backend.IN_A_ROUND) for _, names in seen.BY_TESTS.values() for name in names}
    assert {*backend.FAULTS, *backend.SHORTCUTS, *backend.OF_QUEUES} <= asked | set(seen.HARMLESS)
