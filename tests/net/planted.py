"""Plants faults in the harness, one by one in a copy of the clone, and has the tests look for them.

    python -m tests.net.planted [--extent short] [NAME...]

The exit code is 1 where a fault was planted and no test failed, where the code that it changes is not there, or where
the tests that are to see it fail without it. It is 2 for wrong usage.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import NamedTuple

from py_backends import registry
from py_backends.commands._options import Parser
from py_backends.conformance.selection import Extent
from py_backends.errors import WrongRequest

CLONE = Path(__file__).parents[2]
_FOLDERS = ("py_backends", "kernels", "tests", "benchmarks", "docs", "examples")
_FILES = ("CMakeLists.txt", "pyproject.toml")


class Planted(NamedTuple):
    """A fault: in a module of `py_backends`, what stands there and what is put in its place; who is to see it."""

    name: str
    module: str
    old: str
    new: str
    test: str


def faults() -> list[Planted]:
    """All of them."""
    told = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return [Planted(**each) for each in told["fault"]]


def main(arguments: list[str]) -> int:
    """Plant faults; 1 where one was not caught, SystemExit(2) for wrong usage."""
    parser = Parser(prog="python -m tests.net.planted", description="Plants faults in the harness, one by one.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of faults in planted.toml; all where there is none")
    extents = [extent.name.lower() for extent in Extent]
    parser.add_argument("--extent", choices=extents, default="quick", help="of the tests that look for them")
    asked, every = parser.parse_args(arguments), {each.name: each for each in faults()}
    names, extent = asked.names, asked.extent
    try:
        chosen = [every[registry.known(name, every, "fault")] for name in names or every]
    except WrongRequest as wrong:
        parser.error(str(wrong))
    if not chosen:
        parser.error("there is no fault to plant")
    with tempfile.TemporaryDirectory(prefix="py-backends-planted-") as folder:
        clone = Path(folder)
        for name in _FOLDERS:
            shutil.copytree(CLONE / name, clone / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in _FILES:
            shutil.copy(CLONE / name, clone)
        unfit = {test for test in dict.fromkeys(each.test for each in chosen) if not _passes(test, clone, extent)}
        caught = [_caught(each, clone, extent) for each in chosen if each.test not in unfit]
    print(f"{caught.count(True)} of {len(chosen)} planted faults were caught")
    return int(bool(unfit) or not all(caught))


def _passes(test: str, clone: Path, extent: str) -> bool:
    """Whether tests pass without a fault. If not, what they say of one means nothing."""
    ended = _run(test, clone, extent)
    if ended.returncode != 0:
        print(f"test_{test} fails without a fault:\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}", flush=True)
    return ended.returncode == 0


def _run(test: str, clone: Path, extent: str) -> subprocess.CompletedProcess[str]:
    path = clone / "tests" / f"test_{test}.py"
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"--{extent}", str(path)]
    # Python would take the bytecode of a module that was replaced within a second by one of the same length.
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False, env=environment)


def _caught(planted: Planted, clone: Path, extent: str) -> bool:
    path = clone / "py_backends" / f"{planted.module}.py"
    sound = path.read_text(encoding="utf-8")
    if sound.count(planted.old) != 1:
        print(f"{planted.name}: {planted.module} has {sound.count(planted.old)} times {planted.old!r}")
        return False
    path.write_text(sound.replace(planted.old, planted.new), encoding="utf-8")
    ended = _run(planted.test, clone, extent)
    path.write_text(sound, encoding="utf-8")
    failed = [line for line in ended.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    print(f"{planted.name}: {'caught by ' + failed[0] if failed else 'not caught'}"[:160], flush=True)
    return ended.returncode == 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
