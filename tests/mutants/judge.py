"""Runs the conformance suite on a changed copy of the clone, and says what became of the mutant."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from .mutant import Mutant
from .scratch import Scratch, Stillborn
from .texts import CLONE, Machine, User

CAUGHT, SURVIVED, STILLBORN = "caught", "survived", "stillborn"
_FORM = {
    "opencl": ("py_backends/opencl.py", 'self._form = form or ("CPU" if self._in_place else "GPU")'),
    "sycl": ("py_backends/sycl.py", 'self._form = form or ("CPU" if device.is_cpu else "GPU")'),
}
"""Where a backend decides for which kind of device its kernels are written: those for a GPU run on a CPU as well."""
_NOT_COMPILED = re.compile(
    r"BUILD_PROGRAM_FAILURE|during 'prepare'|(?:Typing|Lowering|Unsupported\w*|LLVM\w*|Syntax|Name|UnboundLocal)Error"
    r"|build_program|error: (?:use of|no m|expected|cannot|invalid|static|assigning|array|implicit|redefin)"
)
_FIRST_FAILURE = re.compile(r"^(?:FAILED|ERROR) (\S+)(?: - (.*))?$", re.MULTILINE)
_PASSED, _FAILED, _NO_TESTS = 0, 1, 5


class JudgeFailed(RuntimeError):
    """The suite did not run, or does not pass on the unchanged text: it says nothing about mutants."""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant, the test that told or the compiler's words, and the seconds that it took."""

    outcome: str
    by: str
    seconds: float


def command(backend: str, target: str, user: User | None) -> list[str]:
    """How a backend is judged on a target: one text of it, or where there is none, all of them."""
    chosen = "-".join((backend, target, *(user or ())))
    return [
        *(sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header"),
        *("tests/test_agreement.py", "-k", chosen),
    ]


class Judge:
    """Judges mutants of one backend in a scratch copy, one at a time.

    times: seconds that the suite takes on unchanged texts, by what is judged; what is not known yet is measured.
    """

    def __init__(self, scratch: Scratch, machine: Machine, times: dict[str, float]) -> None:
        self._scratch, self._machine, self._times = scratch, machine, times

    def judge(self, mutant: Mutant) -> Verdict:
        """The verdict on a mutant: caught as soon as one of those who run its text fails."""
        begin = monotonic()
        place = self._machine.place(mutant.text, mutant.context)
        target = self._machine.target_name(place)
        for user in mutant.text.users or (None,):
            for form in place.forms:
                usual = self._time(mutant, target, user, form)
                try:
                    with self._scratch.changed(self._files(mutant, form), user):
                        verdict = self._suite(command(mutant.backend, target, user), 3 * usual + 20)
                except Stillborn as failed:
                    return Verdict(STILLBORN, _first_line_of_error(str(failed)), monotonic() - begin)
                if verdict != (SURVIVED, ""):
                    return Verdict(*verdict, monotonic() - begin)
        return Verdict(SURVIVED, "", monotonic() - begin)

    def _time(self, mutant: Mutant, target: str, user: User | None, form: str) -> float:
        """How long the suite takes on the unchanged text; JudgeFailed where it does not pass."""
        key = "/".join(filter(None, (mutant.backend, target, *(user or ()), form)))
        if key not in self._times:
            begin = monotonic()
            with self._scratch.changed(_form(mutant.backend, form), None):
                outcome, by = self._suite(command(mutant.backend, target, user), 600)
            if outcome != SURVIVED:
                raise JudgeFailed(f"{key}: the suite does not pass on the unchanged text: {by}")
            self._times[key] = monotonic() - begin
        return self._times[key]

    def _files(self, mutant: Mutant, form: str) -> dict[str, bytes]:
        return {**_form(mutant.backend, form), mutant.text.file: mutant.content}

    def _suite(self, arguments: Sequence[str], most_seconds: float) -> tuple[str, str]:
        """The outcome of a run of the suite, and what told. A crash and a run without end are caught."""
        with tempfile.TemporaryDirectory() as caches:
            process = subprocess.Popen(
                arguments,
                cwd=self._scratch.folder,
                env=_environment(Path(caches)),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
            try:
                output, _ = process.communicate(timeout=most_seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                return CAUGHT, f"no end within {most_seconds:.0f} s"
        if process.returncode == _PASSED:
            return SURVIVED, ""
        if process.returncode < 0:
            return CAUGHT, f"ended by {signal.Signals(-process.returncode).name}"
        failure = _FIRST_FAILURE.search(output)
        if process.returncode != _FAILED or failure is None:
            raise JudgeFailed(f"{' '.join(arguments)}: exit code {process.returncode}\n{output[-2000:]}")
        by = " - ".join(filter(None, (failure[1].rpartition("/")[2], failure[2])))[:200]
        return (STILLBORN if _NOT_COMPILED.search(output) else CAUGHT), by


def _environment(caches: Path) -> dict[str, str]:
    """Ours, where no compiled form of an earlier text is found, and idle threads leave the cores to others."""
    return {
        **{name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTEST_ADDOPTS"}},
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(caches / "numba"),
        "POCL_CACHE_DIR": str(caches / "pocl"),
        "SYCL_CACHE_DIR": str(caches / "sycl"),
        "SYCL_CACHE_PERSISTENT": "1",
        "OMP_WAIT_POLICY": "passive",
    }


def _form(backend: str, form: str) -> dict[str, bytes]:
    """The file that chooses a form, changed so that it chooses this one; nothing where there is no choice."""
    if not form:
        return {}
    name, choice = _FORM[backend]
    before = (CLONE / name).read_text(encoding="utf-8")
    if choice not in before:
        raise JudgeFailed(f"{name} chooses the form of its kernels in other words than {choice!r}")
    return {name: before.replace(choice, f'self._form = "{form}"').encode()}


def _first_line_of_error(log: str) -> str:
    lines = [line for line in log.splitlines() if "error" in line.lower()]
    return (lines or log.splitlines() or [""])[0].strip()[-200:]
