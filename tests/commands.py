"""What tests share that start the project from outside: the command line, and clones to change at will."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import shutil
import struct
import subprocess
import sys
import termios
import venv
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from py_backends import folders
from py_backends.__main__ import main

CLONE = Path(__file__).parent.parent
LONGEST = 120
"""Seconds after which a command is taken for hung."""
_CHANGES_OUTPUT = {"COLUMNS", "LINES", "TERM", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"}

Finished = subprocess.CompletedProcess[str]


def environment(**additional: str) -> dict[str, str]:
    """Ours, without what decides on colours and widths."""
    return {name: value for name, value in os.environ.items() if name not in _CHANGES_OUTPUT} | additional


def run_command(*arguments: str | Path, cwd: Path = CLONE, longest: float = LONGEST) -> Finished:
    """Run `python -m py_backends` to its end, its output in pipes."""
    return run_python("-m", "py_backends", *arguments, cwd=cwd, longest=longest)


def run_here(*arguments: str | Path) -> Finished:
    """Run the command line to its end in this process, which takes a tenth of the time. For what starts no worker.

    A folder that it was given is known to no test after it.
    """
    words, known = list(map(str, arguments)), folders.every()
    output, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(output), redirect_stderr(errors):
        try:
            code = main(words)
        except SystemExit as ended:
            code = int(ended.code or 0)
    for folder in folders.every():
        if folder not in known:
            folders.remove(folder)
    said, complained = (stream.buffer.getvalue().decode() for stream in (output, errors))
    return Finished(words, code, said, complained)


def run_python(
    *arguments: str | Path, cwd: Path = CLONE, longest: float = LONGEST, path: Iterable[Path] = ()
) -> Finished:
    """`path`: folders in which modules are found, beside the ordinary ones."""
    command = [sys.executable, *map(str, arguments)]
    found_in = {"PYTHONPATH": os.pathsep.join(map(str, path))} if path else {}
    return subprocess.run(
        command, cwd=cwd, env=environment(**found_in), capture_output=True, text=True, timeout=longest, check=False
    )


def new_environment(folder: Path, *packages: str) -> Path:
    """Make an environment of Python with these packages in a folder; the path of its Python."""
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*pip, *packages], check=True)
    return python


def run_in_terminal(*arguments: str, columns: int) -> tuple[int, str]:
    """Run `python -m py_backends` on a terminal of that width; its exit code and all that it printed."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    command = [sys.executable, "-m", "py_backends", *arguments]
    with subprocess.Popen(
        command, cwd=CLONE, env=environment(TERM="xterm-256color"), stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        printed = b"".join(iter(lambda: _read(ours), b""))
        os.close(ours)
        return process.wait(LONGEST), printed.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that the other end is closed
        return b""


def copy_clone(to: Path, backends: Iterable[str] | None = None) -> Path:
    """Copy what is run of the clone, with these backends alone where they are named."""
    for folder in ("py_backends", "kernels"):
        shutil.copytree(CLONE / folder, to / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CLONE / "CMakeLists.txt", to)
    if backends is not None:
        kept = set(backends)
        for module in (to / "py_backends" / "backend").glob("[!_]*.py"):
            if module.stem not in kept:
                module.unlink()
    return to
