"""Texts in OpenCL C on Oclgrind, an interpreter that reports accesses out of bounds, races and missed barriers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import in_process

from py_backends.kernel_text import KernelText

_PLACES = (
    (Path(__file__).parents[2] / "build" / "oclgrind", "pyopencl/.libs/liboclgrind-rt-icd*.so*"),
    (Path("/usr/lib/oclgrind"), "liboclgrind-rt-icd.so"),
)
"""Where `make test` unpacks the wheel, and where systems have it. Not the environment: installed there it would be one
more OpenCL device to everybody, in which nothing is as fast as it should be."""
INSTALL = "make test, or apt-get install oclgrind"


def driver() -> Path | None:
    """The library that is Oclgrind to an OpenCL loader; None where there is none."""
    return next((path.resolve() for folder, name in _PLACES for path in sorted(folder.glob(name))), None)


@dataclass(frozen=True)
class Outcome:
    """What Oclgrind reported, and what was wrong with results or the run itself."""

    reports: str
    wrong: list[str]


def run(text: KernelText, form: str, lanes: int, cases: Sequence[tuple[tuple[int, ...], str]], folder: Path) -> Outcome:
    """Run a text in the form for a kind of device, with vectors of so many lanes, at (sizes, dtype)s."""
    log = folder / "reports"
    environment = {
        "OCL_ICD_VENDORS": str(driver()),
        "OCLGRIND_LOG": str(log),
        "OCLGRIND_CHECK_API": "1",
        "OCLGRIND_DATA_RACES": "1",
        "OCLGRIND_UNIFORM_WRITES": "1",  # two that write the same are a race too
        # Not OCLGRIND_UNINITIALIZED: it ends at an instruction that it does not know, and takes the caller's own
        # memory, in which buffers stand here, for memory that nobody has written.
        # It has no such instruction. What is fetched ahead may lie anywhere.
        "OCLGRIND_BUILD_OPTIONS": "-D__builtin_prefetch(address)=",
    }
    ran = in_process.run(text, cases, folder, environment=environment, form=form, lanes=lanes)
    reports = log.read_text(encoding="utf-8", errors="replace").strip() if log.is_file() else ""
    if ran.returncode:
        return Outcome(reports, [f"exit code {ran.returncode}: {ran.stderr[-3000:]}"])
    return Outcome(reports, json.loads(ran.stdout))
