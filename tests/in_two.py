"""Which tests run in one process, where pytest-xdist runs several: loaded by conftest, if it is there.

Those of a file do, since they share what it sets up. Those on the targets of a backend do, where its workers are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer

_ON_A_TARGET = re.compile(r"tests/models/test_(?:models|pairs)\.py::\w+\[(\w+)-")


class ByBackendAndFile(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """Gives a process all tests of a scope."""

    def _split_scope(self, nodeid: str) -> str:
        found = _ON_A_TARGET.match(nodeid)
        return found[1] if found else nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByBackendAndFile:
    """pytest-xdist's own groups (`--dist loadgroup`) are passed over by pytest 9.2, as of pytest-xdist 3.8.

    Scopes of few tests come first: those of many are fast, and leave no process idle in the end.
    """
    config.option.loadscopereorder = False
    return ByBackendAndFile(config, log)
