"""Texts for AMX, compiled for a model of its instructions (on_tiles/tiles.hpp), so that any x86-64 CPU runs them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from compilers import gcc_or_skip
from sanitizers import ADDRESS, HERE

FAULTY = ("-w", "-ftrivial-auto-var-init=pattern")
"""Flags for a text with a planted fault: what it does not set is no zero by chance."""


class OnModel:
    """A text, and a program of on_tiles that reads cases and calls it."""

    def __init__(self, folder: Path, text: Path, program: str, flags: Sequence[str] = ADDRESS.flags) -> None:
        self._path = folder / "program"
        driver = HERE / "on_tiles"
        always = ["-std=c++17", "-O1", "-g1", "-ffp-contract=off", "-fwrapv", "-fopenmp", "-Wall", "-Wextra", "-Werror"]
        source = [f'-DTEXT="{text}"', f"-I{driver}", str(driver / program), "-o", str(self._path)]
        done = subprocess.run([gcc_or_skip(), *always, *flags, *source], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-4000:]

    def answer(self, request: bytes, **variables: str) -> tuple[bytes, str | None]:
        """What it printed, and what it said where it did not end well."""
        environment = {"PATH": os.environ["PATH"], **ADDRESS.environment(), **variables}
        ran = subprocess.run(
            [self._path], input=request, capture_output=True, env=environment, timeout=300, check=False
        )
        failure = ran.stderr.decode(errors="replace")[-4000:] or f"exit code {ran.returncode}"
        return ran.stdout, failure if ran.returncode else None
