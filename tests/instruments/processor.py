"""Programs on a CPU with AMX, which a signal handler makes of one without."""

from __future__ import annotations

import math
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
import pytest
from compilers import gcc_or_skip
from products import Case, wrong
from sanitizers import HERE

from py_backends.contract import Array

DRIVERS = HERE / "on_tiles"
ON_X86_64 = pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"),
    reason="this is no Linux on x86-64 (to change that: one; AMX is for x86-64, and its emulation for Linux)",
)
LONGEST = 240
"""Seconds after which a program is taken for hung."""


def cpu_with_tiles(folder: Path) -> dict[str, str]:
    """The variables for a program that is to run on such a CPU."""
    features = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    if " amx_tile" in features:
        pytest.skip(
            "this CPU has AMX, on which the suite runs these kernels; its own configuration of tiles raises no signal "
            "(to change that: a CPU without AMX)"
        )
    if " fma " not in features:
        pytest.skip("this CPU lacks FMA, by which tiles are modelled (to change that: a CPU that has it)")
    library = folder / "processor.so"
    how = ["-std=c++17", "-O2", "-mfma", "-ffp-contract=off", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror"]
    source = [str(DRIVERS / "processor.cpp"), "-shared", "-fPIC", "-ldl", "-o", str(library)]
    subprocess.run([gcc_or_skip(), *how, *source], check=True)
    return {"LD_PRELOAD": str(library)}


class Failed(Exception):
    """A program ended before it had a result."""


class Program:
    """A driver in on_tiles/ in a process, which compiles each format once."""

    def __init__(self, processor: Mapping[str, str], folder: Path, driver: str, *arguments: object) -> None:
        self._counted, self._said = folder / "counted", folder / "said"
        variables = os.environ | processor | {"TILES_COUNTED": str(self._counted)}
        command = [sys.executable, str(DRIVERS / driver), *map(str, arguments)]
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said
            )

    def results(self, *cases: Case) -> list[Array]:
        """What it computes. Raises Failed with what it said where it ends."""
        return [self._result(case) for case in cases]

    def _result(self, case: Case) -> Array:
        asked, answered = self._pipes
        shape, dtype = (case.a.shape[0], case.b.shape[1]), np.int32 if case.a.dtype == np.int8 else np.float32
        size = math.prod(shape) * np.dtype(dtype).itemsize
        try:
            asked.write(case.request)
            asked.flush()
            answer = answered.read(size)
        except BrokenPipeError:
            answer = b""
        if len(answer) < size or self._process.poll() is not None:
            raise Failed(self._said.read_text(encoding="utf-8", errors="replace")[-4000:])
        return np.frombuffer(answer, dtype).reshape(shape)

    @property
    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        assert self._process.stdin
        assert self._process.stdout
        return self._process.stdin, self._process.stdout

    def end(self) -> dict[str, int]:
        """End it. Returns how often each instruction of tiles was executed."""
        try:
            self._process.communicate(timeout=LONGEST)
        finally:
            self._process.kill()
            self._process.wait()
        if not self._counted.exists():
            return {}
        counts = (line.split() for line in self._counted.read_text(encoding="utf-8").splitlines())
        return {name: int(count) for name, count in counts}


@contextmanager
def running(program: Program) -> Iterator[Program]:
    """The program, which ends with the context."""
    try:
        yield program
    finally:
        program.end()


def complaints(program: Program, *cases: Case) -> dict[str, str]:
    """By case what is not within the kernel's bound, or how the program ended."""
    try:
        return wrong(cases, program.results(*cases))
    except Failed as failed:
        return {"it ended": str(failed)}


def check_conformance(processor: Mapping[str, str], backend: str, *options: str) -> None:
    """Run the conformance suite on the target amx of a backend."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "py_backends.conformance"]
    asked: Sequence[str] = ["--backend", backend, "--target", "amx", *options]
    variables = os.environ | processor
    run = subprocess.run([*command, *asked], env=variables, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-4000:]
    assert re.search(r"matmul +tuned +float16 +\d+ cases", run.stdout), run.stdout[-4000:]
