"""The texts in OpenCL C under Oclgrind: nothing is reported of ours, and what is planted is."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import launched
import oclgrind
import pytest
from faults import table
from faults.table import Change

from py_backends import registry
from py_backends.kernel_text import KernelText

pytestmark = [
    pytest.mark.slow,
    pytest.mark.opencl,
    pytest.mark.skipif(oclgrind.driver() is None, reason=f"no Oclgrind (to change that: {oclgrind.INSTALL})"),
]


def texts() -> Iterator[Any]:
    """Every text in each of its forms, that for CPUs with vectors of one lane and of several."""
    for kernel in registry.kernel_names():
        for variant, text in registry.kernel_texts(kernel, "opencl").items():
            forms = [("CPU", 1), ("CPU", 4), ("GPU", 1)] if "on a CPU" in text.text else [("CPU", 1)]
            for form, lanes in forms:
                yield pytest.param(text, form, lanes, id=f"{kernel}-{variant}-{form}-{lanes}")


@pytest.mark.parametrize(("text", "form", "lanes"), list(texts()))
def test_nothing_is_reported(tmp_path: Path, text: KernelText, form: str, lanes: int, thorough: bool) -> None:
    several = launched.interpreted_sizes(text.problem)
    if form == "CPU" and text.variant != "lecture":  # with few work items
        several += launched.larger_sizes(text.problem)
    cases = [(sizes, dtype) for sizes in several for dtype in registry.dtypes(text)[: None if thorough else 3]]
    outcome = oclgrind.run(text, form, lanes, cases, tmp_path)
    assert outcome.reports == ""
    assert outcome.wrong == []


REPORTS = {
    table.WRITE: "Invalid write",
    table.READ: "Invalid read",
    table.RACE: "data race",
    table.BARRIER: "divergence",
}
"""What Oclgrind calls them. It computes with 32-bit integers as machines do: overflow is none of them."""


@pytest.mark.parametrize("fault", table.planted_by("oclgrind"), ids=attrgetter("name"))
def test_what_is_planted_is_reported(tmp_path: Path, fault: Change) -> None:
    text = fault.faulty_text(tmp_path)
    lanes = 4 if fault.form == "CPU" else 1
    outcome = oclgrind.run(text, fault.form or "CPU", lanes, [(fault.sizes, "float32")], tmp_path)
    assert REPORTS[fault.instrument] in outcome.reports
