"""The page of patterns tells which sources there are."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from commands import CLONE

from py_backends import registry

PAGES = [CLONE / "docs" / name for name in ("patterns.md", "patterns.ko.md")]

pytestmark = pytest.mark.documents


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_table_has_every_source(page: Path) -> None:
    """A source that is added, or taken away, is seen."""
    table = runpy.run_path(str(CLONE / "docs" / "patterns.py"))["table"]()
    assert f"\n{table}\n" in page.read_text(encoding="utf-8"), "python docs/patterns.py prints what belongs there"


def test_every_kernel_has_a_part_with_its_code() -> None:
    text = PAGES[0].read_text(encoding="utf-8")
    for kernel in registry.kernel_names():
        assert f"\n## {kernel}: " in text
        assert text.count(f"<!-- kernels/{kernel}/lecture/") == 2
