"""Which folder is taken for what is kept between runs, and what is said of one that is of no use."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import platformdirs
import pytest
from commands import run_python
from homes import python_at_home

from py_backends.system import cache_folder

FIND = """
from pathlib import Path
from py_backends.system import cache_folder
given = dict(room=2**22, executable={executable})
print(cache_folder.find("kept/here", **given))
print(cache_folder.why_unusable(Path.home() / ".cache" / "missing", **given))
"""


@pytest.mark.parametrize(
    ("options", "executable", "words"),
    [
        ("size=1m", False, "has no 4 MiB left"),
        ("size=100m,noexec", True, "is mounted noexec"),
        ("size=100m,ro", False, "Read-only"),
        ("size=100m,noexec", False, None),
        ("size=100m", True, None),
    ],
)
def test_a_home_is_taken_where_it_is_of_use(tmp_path: Path, options: str, executable: bool, words: str | None) -> None:
    home = tmp_path / "home"
    run = python_at_home(home, options, FIND.format(executable=executable))
    assert run.returncode == 0, run.stderr
    found, said = run.stdout.splitlines()
    assert Path(found).is_relative_to(home) == (words is None)
    assert Path(found).name == "here"
    assert (words is None and said == "None") or (words and words in said)


def test_a_limit_of_files_is_said() -> None:
    script = """
import pathlib, resource
from py_backends.system import cache_folder
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
print(cache_folder.why_unusable(pathlib.Path(), room=2**20))
"""
    assert "no file of 1 MiB" in run_python("-c", script).stdout


def test_a_quota_is_no_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The file system has room then, and each file may be made."""

    def refuse(*_: int) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    assert cache_folder.why_unusable(tmp_path, room=2**20) == f"{tmp_path} has no 1 MiB left"


def test_a_folder_of_others_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Libraries in it are loaded. A link of theirs that leads to a folder of ours is no better."""
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda _: tmp_path)
    monkeypatch.setattr(cache_folder, "_TEMPORARY", ())
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "temporary"))
    assert cache_folder.find("kept") == tmp_path / "kept"
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    assert cache_folder.find("kept") is None


OF_NOBODY = """
import pwd

def unknown(_):
    raise KeyError("uid not found")

pwd.getpwuid = unknown
"""
"""A user that the system does not know, as containers of OpenShift run with."""


def test_without_a_home_what_is_kept_lies_elsewhere_and_backends_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "POCL_CACHE_DIR", "PYOPENCL_NO_CACHE"):
        monkeypatch.delenv(name, raising=False)
    script = f"""{OF_NOBODY}
import os
import numpy as np
from py_backends.system import cache_folder
from py_backends.backend import _opencl_drivers
import py_backends as pb
print(cache_folder.find("kept"))
_opencl_drivers.find()
print(os.environ["POCL_CACHE_DIR"], os.environ["PYOPENCL_NO_CACHE"])
a = np.ones(5, np.float32)
print(pb.vecadd(a, a, backend="numba_cpu"))
"""
    run = run_python("-c", script)
    assert run.returncode == 0, run.stderr
    kept, settings, answer = run.stdout.splitlines()
    assert Path(kept).is_absolute()
    assert settings.startswith("/")
    assert settings.endswith(" 1")
    assert answer == "[2. 2. 2. 2. 2.]"
