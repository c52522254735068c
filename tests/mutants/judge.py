"""Runs the conformance suite on a changed copy of the clone, and says what became of the mutant."""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from time import monotonic
from typing import IO

from py_backends.system import kernel_store

from .mutant import Mutant
from .scratch import Scratch, Stillborn
from .texts import CLONE, Machine, Run, User

CAUGHT, SURVIVED, STILLBORN = "caught", "survived", "stillborn"
QUICK, THOROUGH, TESTS = JUDGES = "quick", "thorough", "tests"
"""Who may judge: the suite, by its extent, or the tests of the clone."""
_FORMS = {
    **dict.fromkeys(
        ("opencl", "sycl"),
        (
            "py_backends/backend/_queues.py",
            'form or ("CPU" if on_cpu else "GPU")',
            {"CPU": '"CPU"', "GPU": '"GPU"'},
        ),
    ),
    "cuda": (
        "py_backends/backend/cuda.py",
        '["WARPS"] if dtype.itemsize < 4 or exchanges else []',
        {
            "WARPGROUPS": '["WARPS", "WARPGROUPS"] if dtype.itemsize < 4 else []',
            "FLOAT64": '["WARPS"] if dtype.itemsize != 4 else []',
        },
    ),
}
"""For each backend with several forms: the file that decides on one, the words that decide there, and for each form the
words that decide on it instead. Kernels for a GPU run on a CPU as well. In the emulation, those for Hopper run, and
those that multiply float64 by tensor cores."""
_SUITE = "py_backends.conformance"
_PLUGIN = f"{_SUITE}.plugin"
_QUIETLY = ("-q", "--no-header", "--assert=plain", "-p", "no:cacheprovider")
_TESTS = tuple(f"{_SUITE}.{module}" for module in ("test_results", "test_calls", "test_drawn"))
_NOT_COMPILED = re.compile(r"^prepare: ", re.MULTILINE)
"""How the suite says that a text could not be prepared."""
_FIRST_FAILURE = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - (.*))?$", re.MULTILINE)
_PASSED, _FAILED = 0, 1
_PATIENCE = "60"
"""Seconds after which a worker that has not answered is taken for hung: many more than a busy machine needs."""
_LONGEST = 600.0
"""Seconds that the suite may take on an unchanged text."""


class JudgeFailed(RuntimeError):
    """The suite did not run, or does not pass on the unchanged text: it says nothing about mutants."""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant, the test that told or the compiler's words, and the seconds that it took."""

    outcome: str
    by: str
    seconds: float


def command(
    backend: str, target: str, user: User | None, formats: Sequence[str] = (), extent: str = QUICK
) -> list[str]:
    """What pytest is told to judge a backend on a target: one text of it, or where there is none, all of them.

    formats: as of a Run.

    Results come first: most mutants are caught there, and whether they compile is seen there.
    """
    chosen = {"backend": backend, "target": target, **dict(zip(("kernel", "variant"), user or (), strict=False))}
    return [
        *("-x", *_QUIETLY),
        *("-p", _PLUGIN, "--pyargs", *_TESTS, "--patience", _PATIENCE),
        *(("--thorough", "-k", " or ".join(formats)) if formats else (f"--{extent}",)),
        *(f"--{option}={name}" for option, name in chosen.items()),
    ]


def command_of_tests(backend: str, user: User | None) -> list[str]:
    """What pytest is told to judge a backend as `make test` does after a change: tests of models that both select."""
    kernel = user[0] if user else ""
    chosen = ("-k", kernel) if kernel else ()
    return [*_QUIETLY, "-m", backend, *chosen, f"--changed=kernels/{kernel}", "tests/models"]


class Judge:
    """Judges mutants of one backend in a scratch copy, one at a time.

    times: seconds that the suite takes on unchanged texts, by what is judged; what is not known yet is measured.
    unfit: tests of the clone that fail in a copy as it is, by what is judged.
    by: who judges: the suite, of an extent, on the changed text alone; or `TESTS`.
    """

    def __init__(
        self,
        scratch: Scratch,
        machine: Machine,
        times: dict[str, float],
        unfit: dict[str, list[str]],
        by: str,
    ) -> None:
        self._scratch, self._machine, self._times = scratch, machine, times
        self._unfit, self._by = unfit, by
        self._process = SuiteProcess(scratch.folder, machine.backend)
        self._cannot: dict[str, JudgeFailed] = {}

    def close(self) -> None:
        """End the process that runs the suite."""
        self._process.close()

    def judge(self, mutant: Mutant) -> Verdict:
        """The verdict on a mutant: caught as soon as one of those who run its text fails."""
        begin = monotonic()
        place = self._machine.place(mutant.text, mutant.context)
        target = self._machine.target_name(self._scratch.instruction_set)
        for user, run in product(mutant.text.users or (None,), (Run(),) if self._by == TESTS else place.runs):
            if self._by == TESTS:
                asked = self._tests(command_of_tests(mutant.backend, user))
            else:
                asked = command(mutant.backend, target, user, run.formats, self._by)
            # Tests try little of what has not changed, and so say nothing of how long the rest takes.
            most = _LONGEST if self._by == TESTS else 5 * self._time(mutant.backend, asked, run.form) + 60
            try:
                with self._scratch.changed(self._files(mutant, run.form), user):
                    verdict = self._suite(asked, most)
            except Stillborn as failed:
                return Verdict(STILLBORN, _first_line_of_error(str(failed)), monotonic() - begin)
            if verdict != (SURVIVED, ""):
                return Verdict(*verdict, monotonic() - begin)
        return Verdict(SURVIVED, "", monotonic() - begin)

    def _tests(self, asked: list[str]) -> list[str]:
        """What runs the tests that pass in the unchanged copy, to the first that fails."""
        key = shlex.join(asked)
        if key not in self._unfit:
            with tempfile.TemporaryDirectory() as caches:
                _, output = self._process.run(asked, _environment(Path(caches)), _LONGEST)
            self._unfit[key] = [found[1] for found in _FIRST_FAILURE.finditer(output)]
        return [*asked, "-x", *(f"--deselect={name}" for name in self._unfit[key])]

    def _time(self, backend: str, asked: Sequence[str], form: str) -> float:
        """How long the suite takes on the unchanged text; JudgeFailed where it does not pass."""
        key = shlex.join(filter(None, (*asked, form)))
        if key in self._cannot:
            raise self._cannot[key]
        if key not in self._times:
            begin = monotonic()
            with self._scratch.changed(files_of_form(backend, form), None):
                outcome, by = self._suite(asked, _LONGEST)
            if outcome != SURVIVED:
                self._cannot[key] = JudgeFailed(f"{key}: the suite does not pass on the unchanged text: {by}")
                raise self._cannot[key]
            self._times[key] = monotonic() - begin
        return self._times[key]

    def _files(self, mutant: Mutant, form: str) -> dict[str, bytes]:
        return {**files_of_form(mutant.backend, form), mutant.text.file: mutant.content}

    def _suite(self, arguments: Sequence[str], most_seconds: float) -> tuple[str, str]:
        """The outcome of a run of the suite, and what told. A crash and a run without end are caught."""
        with tempfile.TemporaryDirectory() as caches:
            code, output = self._process.run(arguments, _environment(Path(caches)), most_seconds)
        if code is None:
            return CAUGHT, f"no end within {most_seconds:.0f} s"
        if code == _PASSED:
            return SURVIVED, ""
        if code < 0:
            return CAUGHT, f"ended by {signal.Signals(-code).name}"
        failure = _FIRST_FAILURE.search(output)
        if code != _FAILED or failure is None:
            raise JudgeFailed(f"{' '.join(arguments)}: exit code {code}\n{output[-2000:]}")
        by = " - ".join(filter(None, (failure[1].rpartition("/")[2], failure[2])))[:200]
        return (STILLBORN if _NOT_COMPILED.search(output) else CAUGHT), by


class SuiteProcess:
    """The process that runs the suite, see serve.py, in a copy of the clone; started when it is first asked."""

    def __init__(self, folder: Path, backend: str) -> None:
        self._folder, self._backend = folder, backend
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, arguments: Sequence[str], environment: dict[str, str], most_seconds: float) -> tuple[int | None, str]:
        """The exit code of pytest, negative where a signal ended it and None where it did not end, and its output.

        JudgeFailed where the process does not begin to run it.
        """
        with tempfile.NamedTemporaryFile() as output:
            request = {"arguments": list(arguments), "environment": environment, "output": output.name}
            answers = self._ask(json.dumps(request))
            number = self._answer(answers, _LONGEST)
            if number is None:
                self.close()  # which would answer this request to the next
                raise JudgeFailed(f"the process that runs the suite has not begun to within {_LONGEST:.0f} s")
            code = self._answer(answers, most_seconds)
            if code is None:
                os.killpg(int(number), signal.SIGKILL)
                self._answer(answers, _LONGEST)
            return None if code is None else int(code), output.read().decode(errors="replace")

    def close(self) -> None:
        """End it; whoever asks again starts another."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _ask(self, request: str) -> IO[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, Path(__file__).with_name("serve.py"), self._backend],
                cwd=self._folder,
                env=_environment(self._folder / "caches"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
            )
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{request}\n".encode())
        return self._process.stdout

    @staticmethod
    def _answer(answers: IO[bytes], most_seconds: float) -> bytes | None:
        """The next line; None where there is none yet after so many seconds. JudgeFailed where the process is gone."""
        if not select.select([answers], [], [], most_seconds)[0]:
            return None
        line = answers.readline()
        if not line:
            raise JudgeFailed("the process that runs the suite has ended")
        return line


def _environment(caches: Path) -> dict[str, str]:
    """Ours, where no compiled form of an earlier text is found, and idle threads leave the cores to others."""
    return {
        **{name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTEST_ADDOPTS"}},
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(caches / "numba"),
        "POCL_CACHE_DIR": str(caches / "pocl"),
        kernel_store.PLACE: str(caches / "kernels"),
        "OMP_WAIT_POLICY": "passive",
        "COLUMNS": "400",  # what pytest says of a failure is one line, which is cut where it is longer
    }


def files_of_form(backend: str, form: str) -> dict[str, bytes]:
    """The file that chooses a form, changed so that it chooses this one; nothing where there is no choice.

    JudgeFailed where the file chooses in other words than are known here.
    """
    if not form:
        return {}
    name, choice, others = _FORMS[backend]
    before = (CLONE / name).read_text(encoding="utf-8")
    if choice not in before:
        raise JudgeFailed(f"{name} chooses the form of its kernels in other words than {choice!r}")
    return {name: before.replace(choice, others[form]).encode()}


def _first_line_of_error(log: str) -> str:
    lines = [line for line in log.splitlines() if "error" in line.lower()]
    return (lines or log.splitlines() or [""])[0].strip()[-200:]
