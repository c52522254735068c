"""Comparisons as processes: what they have in use while they run, and that nothing of it is left in the end."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from commands import CLONE, LONGEST, environment

TELLING_ITS_STAGES = """
import contextlib, sys
import py_backends.__main__ as command_line
from py_backends.commands import _run

class Telling:
    def update(self, done, total, text):
        print(text, file=sys.stderr, flush=True)

_run.progress = lambda: contextlib.nullcontext(Telling())
sys.exit(command_line.main())
"""
"""Runs the command line, and writes to standard error what it is doing."""
OPTIONS = ("compare", "--kernel", "vecadd", "--shape", "vecadd=509", "--budget", "60")
LAST_STAGE = "checking again"
SOON = ("--budget", "2")
"""For those who wait for the last stage, which comes once figures are narrow or the time is up."""
_MEMORY = "/memfd:py-backends"
_MARK = "PY_BACKENDS_TEST_RUN"
_LOOKS_EVERY = 0.1
_ENDS_WITHIN = 10.0
"""Seconds within which a process is gone that got SIGKILL, on a machine that is busy."""

Memory = frozenset[tuple[int, int]]
"""Shared memory, each as the device and inode of a file in memory."""


class Started:
    """A command that was started, whose processes are known by a variable that they inherit."""

    def __init__(self, command: Sequence[str], cwd: Path = CLONE, **how: Any) -> None:
        """Start it; `how` are more arguments of Popen."""
        self._mark = uuid.uuid4().hex
        self._others = set(psutil.pids())  # none of which is ours: they need not be looked at again and again
        self._memory: set[tuple[int, int]] = set()
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process: subprocess.Popen[str] = subprocess.Popen(
            command, cwd=cwd, env=environment(**{_MARK: self._mark}), text=True, **(pipes | how)
        )
        self._begin = time.monotonic()
        self._watcher = threading.Thread(target=self._watch)
        self._watcher.start()

    def end(self, results: Path | None = None) -> Ended:
        """Wait for its end, and read its results where it should have written some."""
        try:
            output, errors = self.process.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            self.process.kill()
            output, errors = self.process.communicate()
        seconds = time.monotonic() - self._begin
        self._watcher.join()
        content = json.loads(results.read_text(encoding="utf-8")) if results else None
        memory = frozenset(self._memory)
        return Ended(self.process.returncode, output or "", errors or "", seconds, content, self._mark, memory)

    def workers(self) -> list[psutil.Process]:
        """Its workers that are alive."""
        return [process for process in _of_run(self._mark, self._others) if process.pid != self.process.pid]

    def _watch(self) -> None:
        while self.process.poll() is None:
            for process in _of_run(self._mark, self._others):
                self._memory |= set(_memory_of(process.pid))
            time.sleep(_LOOKS_EVERY)


@dataclass
class Ended:
    """A command that has ended, and the shared memory that its processes had while it ran."""

    code: int
    output: str
    errors: str
    seconds: float
    results: Any
    mark: str
    memory: Memory

    @property
    def rows(self) -> dict[str, Any]:
        """The rows of its results by backend."""
        return {row["backend"]: row for row in self.results["rows"]}

    def assert_nothing_is_left(self, *, had_memory: bool = True) -> None:
        """No process of it is alive, and no process of the system has anything of its memory."""
        deadline = time.monotonic() + _ENDS_WITHIN
        while (alive := list(_of_run(self.mark))) and time.monotonic() < deadline:
            time.sleep(_LOOKS_EVERY)
        assert not [(process.pid, process.status(), process.cmdline()) for process in alive]
        assert self.memory or not had_memory, "it was never seen with any memory, which shows nothing"
        assert not [pid for pid in psutil.pids() if self.memory & set(_memory_of(pid))]


def started_until(
    stage: str, path: Path, backends: str = "numpy,python", cwd: Path = CLONE, options: Sequence[str] = ()
) -> Started:
    """A comparison, of these backends or with other options, that has just come to a stage."""
    options = options or (*OPTIONS, "--backend", backends, *(SOON if stage == LAST_STAGE else ()))
    run = Started([sys.executable, "-c", TELLING_ITS_STAGES, *options, "--json", str(path)], cwd)
    assert run.process.stderr
    for line in run.process.stderr:
        if line.startswith(stage):
            return run
    raise AssertionError(f"it ended with {run.process.wait()} before {stage!r}")


def _of_run(mark: str, others: Collection[int] = ()) -> Iterator[psutil.Process]:
    """Every process that was started by a run, whoever is its parent by now; none of `others`."""
    for process in psutil.process_iter():
        try:
            if process.pid in others:
                continue
            if process.environ().get(_MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                yield process
        except psutil.Error:  # it has ended, or is somebody else's
            continue


def _memory_of(pid: int) -> Iterator[tuple[int, int]]:
    """The harness's shared memory that a process holds open or has mapped."""
    process = Path(f"/proc/{pid}")
    with contextlib.suppress(OSError):  # it has ended, or is somebody else's
        for link in (process / "fd").iterdir():
            if str(link.readlink()).startswith(_MEMORY):
                found = link.stat()
                yield found.st_dev, found.st_ino
    with contextlib.suppress(OSError):
        for line in (process / "maps").read_text(encoding="utf-8", errors="replace").splitlines():
            if _MEMORY in line:
                _addresses, _permissions, _offset, device, inode, *_path = line.split()
                major, minor = (int(number, 16) for number in device.split(":"))
                yield os.makedev(major, minor), int(inode)
