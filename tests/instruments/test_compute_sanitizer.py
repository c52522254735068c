"""CUDA's texts on a GPU under compute-sanitizer: nothing is reported of ours, and what is planted is."""

from __future__ import annotations

import json
import shutil
from operator import attrgetter
from pathlib import Path

import in_process
import launched
import pytest
from faults import table
from faults.table import Change

from py_backends import registry
from py_backends.backend import _nvidia_driver
from py_backends.kernel_text import KernelText

_TOOL = shutil.which("compute-sanitizer")
_MISSING = _nvidia_driver.driver().reason or (
    None if _TOOL else "no compute-sanitizer, which comes with CUDA's toolkit"
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.cuda,
    pytest.mark.skipif(_MISSING is not None, reason=f"compute-sanitizer not run: {_MISSING}"),
]

TEXTS = [text for kernel in registry.kernel_names() for text in registry.kernel_texts(kernel, "cuda").values()]
TOOL_OF = {table.WRITE: "memcheck", table.READ: "memcheck", table.RACE: "racecheck", table.BARRIER: "synccheck"}
"""What sees which kind of fault, races in shared memory only. initcheck looks for memory that was never written."""


@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "initcheck", "synccheck"])
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: f"{text.kernel}-{text.variant}")
def test_nothing_is_reported(tmp_path: Path, text: KernelText, tool: str) -> None:
    several = launched.interpreted_sizes(text.problem) + launched.larger_sizes(text.problem)
    cases = [(sizes, dtype) for sizes in several for dtype in text.dtypes if dtype != "bfloat16"]  # as float16
    ran = in_process.run(text, cases, tmp_path, before=[str(_TOOL), "--tool", tool, "--error-exitcode", "9"])
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert json.loads(next(line for line in ran.stdout.splitlines() if line.startswith("["))) == []


@pytest.mark.parametrize("fault", table.planted_by("compute_sanitizer"), ids=attrgetter("name"))
def test_what_is_planted_is_reported(tmp_path: Path, fault: Change) -> None:
    before = [str(_TOOL), "--tool", TOOL_OF[fault.instrument], "--error-exitcode", "9"]
    text = fault.faulty_text(_with_headers(fault, tmp_path))
    ran = in_process.run(text, [(fault.sizes, "float32")], tmp_path, before=before)
    assert "ERROR SUMMARY: 0 errors" not in ran.stdout
    assert ran.returncode == 9, ran.stdout + ran.stderr


def _with_headers(fault: Change, folder: Path) -> Path:
    """A folder for the source, beside the headers that it includes."""
    original = fault.text.path.parent
    kernels = original.parents[1]
    own = folder / original.relative_to(kernels)
    own.mkdir(parents=True)
    for header in (*kernels.glob("*.hpp"), *original.glob("*.hpp")):
        shutil.copy(header, folder / header.relative_to(kernels))
    return own
