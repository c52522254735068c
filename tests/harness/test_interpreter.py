"""How processes of ours are started: they find what the caller has found, whatever program that is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from commands import CLONE, environment

from py_backends.errors import BackendUnavailable
from py_backends.system import interpreter, surroundings


@pytest.mark.parametrize("known", ["", None])
def test_a_program_that_embeds_python_takes_that_of_its_environment(
    known: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", known)
    assert Path(interpreter.command("this")[0]).is_file()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(BackendUnavailable, match="does not know its Python interpreter"):
        interpreter.command("this")


def test_packages_on_the_path_alone_are_found_and_nothing_else_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A script's folder may hold a module of ours by name, such as `signals.py`."""
    packages, scripts = tmp_path / "packages", tmp_path / "scripts"
    (packages / "plugin-1.0.dist-info").mkdir(parents=True)
    scripts.mkdir()
    monkeypatch.setattr(sys, "path", [str(scripts), str(packages), *sys.path])
    found = surroundings.environment({})["PYTHONPATH"].split(":")
    assert str(packages) in found
    assert str(scripts) not in found


def test_workers_run_where_all_packages_are_on_the_path_alone() -> None:
    """As Bazel, PEX and `pip --target` have them: the interpreter itself knows none of them."""
    packages = [path for path in sys.path if path.endswith("site-packages")]
    script = f"""
import sys
sys.path[:0] = {[str(CLONE), *packages]}
import py_backends as pb
rows = pb.compare(kernels=["vecadd"], backends=["numpy"], shapes={{"vecadd": [(9,)]}}, budget=0.1).rows
print([(row.backend, row.status, row.reason) for row in rows])
"""
    command = [sys._base_executable, "-I", "-c", script]
    run = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert (run.stdout, run.stderr) == ("[('numpy', 'ok', None)]\n", "")


def test_where_no_home_is_known_libraries_have_one_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: int) -> None:
        raise KeyError("uid not found")

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert Path(surroundings.environment({})["HOME"]).is_dir()
