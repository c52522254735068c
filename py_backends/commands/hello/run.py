"""Runs the first program of a programming model, and finds the output of each of its steps."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from py_backends.commands.hello import programs
from py_backends.commands.hello.programs import Program
from py_backends.contract import Target
from py_backends.errors import BackendUnavailable
from py_backends.install import pip
from py_backends.ranks import launcher
from py_backends.ranks.engine import engine
from py_backends.system import cxx, interpreter, machine, surroundings
from py_backends.system.files import printable
from py_backends.workers import probe

_EMULATED = programs.PLACE / "emulated"
"""Modules that stand in for libraries if their device is emulated."""
_STANDS_IN = "a CPU runs the kernel, and py_backends/hello/emulated stands in for the GPU's libraries"
_LONGEST = 120.0
"""Seconds after which a compiler or a program counts as hung."""
_ENDS_WITHIN = 5.0
"""Seconds that it may take to end after SIGTERM."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of running a program.

    ran: whether it ran to its end without an error.
    command: what was run, as a user would write it; None if nothing was.
    printed: by the number of a step, the lines that it printed.
    reason, fix: why it did not run, or why the CPU ran it in place of its device; None if all went well.
    """

    ran: bool
    command: str | None = None
    printed: Mapping[int, Sequence[str]] = field(default_factory=dict)
    reason: str | None = None
    fix: str | None = None

    @property
    def failed(self) -> bool:
        """Whether it was started and ended with an error."""
        return self.command is not None and not self.ran


def run(program: Program) -> Outcome:
    """Run a program to its end, or say why it cannot be run."""
    try:
        with tempfile.TemporaryDirectory(prefix="py-backends-") as folder:
            Path(folder, program.path.name).write_text(program.marked, encoding="utf-8")
            return (_interpreted if program.path.suffix == ".py" else _compiled)(program, folder)
    except BackendUnavailable as unavailable:
        return Outcome(False, reason=unavailable.reason, fix=unavailable.fix)
    except OSError as error:  # the temporary folder is full, or programs may not be run in it
        return Outcome(False, reason=f"it cannot be run: {error.strerror}", fix="name another folder: TMPDIR=FOLDER")


def _compiled(program: Program, folder: str) -> Outcome:
    """Compile a C++ program with the user's compiler, and run it."""
    words = shlex.split(program.said("Build") or "")
    _check_cpu((program.said("Needs") or "").split())
    words[:1] = cxx.compiler(words[0], program.said("Compiler") or "a C++ compiler, for instance g++")
    command = shlex.join(words)
    environment = with_libraries_of_wheels()
    made = _finished(words, folder, {**environment, **surroundings.OF_COMPILERS})
    if made.returncode:
        another = f"name another compiler: CXX=g++ py-backends hello {program.model}"
        library = program.said("Library")
        fix = f"install {library}; or {another}" if library else another
        raise BackendUnavailable(f"`{command}` fails: {_error_line(made.stderr)}", fix)
    return _outcome(_finished([f"./{words[-1]}"], folder, environment), f"{command} && ./{words[-1]}")


def with_libraries_of_wheels() -> Mapping[str, str]:
    """The environment, in which compilers and programs also find what wheels put into `include` and `lib`."""
    folders = {"CPLUS_INCLUDE_PATH": "include", "LIBRARY_PATH": "lib", "LD_LIBRARY_PATH": "lib"}
    found = {name: (os.environ.get(name), f"{sys.prefix}/{folder}") for name, folder in folders.items()}
    return {**os.environ, **{name: os.pathsep.join(filter(None, each)) for name, each in found.items()}}


def _check_cpu(needed: Sequence[str]) -> None:
    missing = [name for name in needed if name not in machine.describe()["isa"]]
    if missing:
        raise BackendUnavailable(f"this CPU lacks {', '.join(missing)}", "needs an x86-64 CPU that has it")


def _interpreted(program: Program, folder: str) -> Outcome:
    """Run a Python program on the first device that its backend finds, or on its emulation."""
    target = _target(program.model)
    named = [target.device] if target.device and "sys.argv" in program.source else []
    additional = {**target.environment, "PYTHONUNBUFFERED": ""}
    module = program.said("Import")
    if module and not target.emulated and importlib.util.find_spec(module) is None:
        raise BackendUnavailable(f"{module} is not installed", f"{pip()} install {module}")
    if target.emulated:
        additional["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_EMULATED), os.environ.get("PYTHONPATH", "")]))
    starter: list[str] = []
    if ranks := program.said("Ranks"):
        found = engine()
        starter = found.command(int(ranks))
        additional |= found.environment
    python = [interpreter.python(), "-P", program.path.name, *named]
    environment = launcher.without_launcher(surroundings.environment(additional))
    finished = _finished([*starter, *python], folder, environment)
    shown = shlex.join([*(Path(word).name for word in starter[:1]), *starter[1:], "python", program.path.name, *named])
    return _outcome(finished, shown, target)


def _target(model: str) -> Target:
    """The first available target of the backend of that name. Raises BackendUnavailable if there is none."""
    found = [each.target for each in probe.probe([model])]
    there = next((target for target in found if target.available), None)
    if there is None:
        raise BackendUnavailable(found[0].reason or "it is not there", found[0].fix)
    return there


def _outcome(finished: subprocess.CompletedProcess[str], command: str, target: Target | None = None) -> Outcome:
    """The outcome of a program that has ended."""
    printed = _printed(finished.stdout)
    if finished.returncode:
        code = finished.returncode
        ended = f"exit code {code}" if code > 0 else f"signal {-code}"
        reason = f"it ended with {ended}: {_error_line(finished.stderr)}"
        return Outcome(False, command, printed, reason)
    if target and target.emulated:
        return Outcome(True, command, printed, f"{target.reason}: {_STANDS_IN}", target.fix)
    return Outcome(True, command, printed)


def _printed(text: str) -> dict[int, list[str]]:
    """The lines of each step."""
    printed: dict[int, list[str]] = {}
    for piece in text.split(programs.MARK)[1:]:
        number, said = re.fullmatch(r"(\d*) ?(.*)", piece, re.DOTALL).groups()  # type: ignore[union-attr]  # always
        lines = [printable(line.rstrip()) for line in said.splitlines() if line.strip()]
        if number and lines:
            printed.setdefault(int(number), []).extend(lines)
    return printed


def _error_line(text: str) -> str:
    """The first error line of a compiler or an interpreter, else its last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error:" in line]
    return printable((errors[:1] or lines[-1:] or ["it prints nothing"])[0])


def _finished(command: Sequence[str], folder: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end. Raises BackendUnavailable if it takes too long."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    ) as process:
        try:
            out, err = process.communicate(timeout=_LONGEST)
        except BaseException as ended:
            _end(process)
            if isinstance(ended, subprocess.TimeoutExpired):
                raise BackendUnavailable(f"`{shlex.join(command)}` has not ended within {_LONGEST:g} s") from ended
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _end(process: subprocess.Popen[str]) -> None:
    """End a process by SIGTERM, so that a launcher can end its ranks, and after a while by SIGKILL."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_ENDS_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
