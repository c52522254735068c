"""`make` on systems that lack things, and after it was killed.

The script cmake/set_up.sh runs in a folder of its own, on a system of a few commands, where `python3`, `cmake` and the
compiler are stand-ins that write down how they were called. What happens on real ones .ci/bare shows.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import CLONE, Finished

from py_backends import _compiled
from py_backends.errors import BackendUnavailable

pytestmark = pytest.mark.slow

COMMANDS = (
    *("sh", "cat", "cksum", "dirname", "flock", "grep", "id", "mkdir", "printf", "pwd", "rm", "sleep", "touch"),
    *("kill", "cp", "chmod", "cmp", "ln", "tr"),
)
PYTHON = """#!/bin/sh
echo "python $*" >>"$LOG"
case "$*" in
  *ensurepip*) exit $NO_PYTHON ;;
  *Python.h*) exit $NO_HEADERS ;;
  --version) echo "Python $VERSION" ;;
  *'-m venv'*) mkdir -p .venv/bin && echo "$VERSION" >.venv/version
    cp "$0" .venv/bin/python && mkdir -p .venv/cmake/bin && cp "$STANDINS/cmake" .venv/cmake/bin ;;
  *'-m cmake'*) shift 2; exec .venv/cmake/bin/cmake "$@" ;;
  *CMAKE_DATA*) echo "$PWD/.venv/cmake" ;;
  *'pip install'*) eval "$DURING_PIP" ;;
  *'pip --version'*) [ "$(cat .venv/version)" = "$VERSION" ]; exit ;;
  *not_built*) exec "$REAL_PYTHON" "$@" ;;
esac
"""
CMAKE = """#!/bin/sh
echo "cmake $* in $PWD" >>"$LOG"
case "$*" in *--fresh*) mkdir -p build/release; touch build/release/CMakeCache.txt; exit $CMAKE_FAILS ;; esac
"""
COMPILER = """#!/bin/sh
exit $NO_COMPILER
"""
DISTRIBUTIONS = {
    "Debian": ("ID=debian", "apt install", {"python3-venv", "python3-dev", "g++"}),
    "Ubuntu": ("ID=ubuntu\nID_LIKE=debian", "apt install", {"python3-venv", "python3-dev", "g++"}),
    "Mint": ('ID=linuxmint\nID_LIKE="ubuntu debian"', "apt install", {"python3-venv", "python3-dev", "g++"}),
    "Fedora": ("ID=fedora", "dnf install", {"python3", "python3-devel", "gcc-c++"}),
    "Rocky": ('ID="rocky"\nID_LIKE="rhel centos fedora"', "dnf install", {"python3", "python3-devel", "gcc-c++"}),
    "Arch": ("ID=arch", "pacman -S --needed", {"python", "gcc"}),
    "Manjaro": ("ID=manjaro\nID_LIKE=arch", "pacman -S --needed", {"python", "gcc"}),
}


class System:
    """A folder with what the script reads, and a system of stand-ins."""

    def __init__(self, folder: Path, clone: str = "clone") -> None:
        self.clone, commands = folder / clone, folder / "bin"
        self.log = folder / "log"
        for path in ("cmake/set_up.sh", "cmake/compiler_check.cpp", "CMakePresets.json", "pyproject.toml"):
            (self.clone / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CLONE / path, self.clone / path)
        (self.clone / "py_backends/_compiled").mkdir(parents=True)
        commands.mkdir()
        for name in COMMANDS:
            if path := shutil.which(name):
                (commands / name).symlink_to(path)
        for name, text in (("python3", PYTHON), ("cmake", CMAKE), ("c++", COMPILER)):
            (commands / name).write_text(text, encoding="utf-8")
            (commands / name).chmod(0o755)
        self.os_release = folder / "os-release"
        self.os_release.write_text("ID=debian\n", encoding="utf-8")
        self.environment = {
            "PATH": str(commands), "HOME": str(folder), "STANDINS": str(commands), "LOG": str(self.log),
            "OS_RELEASE": str(self.os_release),
            "REAL_PYTHON": os.path.realpath("/proc/self/exe"), "DURING_PIP": "", "CMAKE_FAILS": "0",
            "VERSION": "3.11.2", "NO_PYTHON": "0", "NO_HEADERS": "0", "NO_COMPILER": "0",
        }  # fmt: skip

    def start(self, *extras: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["/bin/sh", "cmake/set_up.sh", *(extras or ("cpu,peers",))],
            cwd=self.clone,
            env=self.environment | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def set_up(self, *extras: str, **environment: str) -> Finished:
        with self.start(*extras, **environment) as process:
            stdout, stderr = process.communicate(timeout=60)
        return subprocess.CompletedProcess([], process.returncode, stdout, stderr)

    def calls(self) -> str:
        """What was called since this was last asked."""
        lines = self.log.read_text(encoding="utf-8") if self.log.exists() else ""
        self.log.write_text("", encoding="utf-8")
        return lines


@pytest.fixture
def system(tmp_path: Path) -> System:
    return System(tmp_path)


def test_a_whole_system_is_set_up_and_built_and_then_only_built(system: System) -> None:
    run = system.set_up()
    assert (run.returncode, run.stderr) == (0, "")
    first = system.calls()
    assert ".[cpu,peers]" in first
    assert first.index("pip install") < first.index("--fresh") < first.index("cmake --build")
    assert (system.set_up().returncode, system.set_up().stdout) == (0, "")
    again = system.calls()
    assert "pip install" not in again
    assert "--fresh" not in again
    assert "cmake --build" in again


@pytest.mark.parametrize("name", ["내 작업 (it's)", "a&b#c", "a$b", "a[b]", "a?b", "~a|b"])
def test_a_folder_may_have_any_name_that_cmake_takes(tmp_path: Path, name: str) -> None:
    system = System(tmp_path, name)
    run = system.set_up()
    if "|" in name:
        assert (run.returncode, run.stdout, run.stderr.count("\n")) == (1, "", 1)
        assert str(system.clone) in run.stderr
        return
    assert (run.returncode, run.stderr) == (0, "")
    own = system.clone / ".venv/bin"
    (own / "python3").symlink_to("/bin/false")
    again = system.set_up("cpu,peers", "test", PATH=f"{own}:{system.environment['PATH']}")
    assert (again.returncode, again.stderr) == (0, ""), "an activated environment's own Python is not taken"
    calls = re.findall(r"cmake --preset .* in (.*)", system.calls())
    patterns = set("[]?*")
    assert calls
    assert not patterns & set("".join(calls)), "what CMake takes for a pattern"


def test_more_extras_are_added_and_a_changed_pyproject_installs_again(system: System) -> None:
    system.set_up("cpu,peers")
    system.calls()
    system.set_up("cpu,peers", "test,docs,dev")
    assert ".[test,docs,dev]" in system.calls()
    (system.clone / "pyproject.toml").write_text("# changed", encoding="utf-8")
    system.set_up("cpu,peers", "test,docs,dev")
    changed = system.calls()
    assert ".[cpu,peers,test,docs,dev]" in changed
    assert "venv --clear" not in changed, "what is installed stays"
    assert "--fresh" not in changed, "and what is compiled"


def test_after_an_upgrade_of_the_systems_python_the_environment_is_made_anew(system: System) -> None:
    """The new one finds no package in an environment of the old one, of which its marks say nothing."""
    system.set_up()
    system.calls()
    run = system.set_up(VERSION="3.13.5")
    assert (run.returncode, run.stderr) == (0, "")
    calls = system.calls()
    assert calls.index("venv --clear") < calls.index(".[cpu,peers]") < calls.index("--fresh")
    assert system.set_up(VERSION="3.13.5").stdout == ""


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_all_that_is_missing_is_said_in_one_line_before_anything_is_fetched(system: System, distribution: str) -> None:
    release, installs, packages = DISTRIBUTIONS[distribution]
    system.os_release.write_text(f"NAME='Some Linux'\n{release}\n", encoding="utf-8")
    run = system.set_up(NO_PYTHON="1", NO_COMPILER="1")
    assert (run.returncode, run.stdout) == (1, "")
    assert re.fullmatch(r"Missing: Python 3.11 or newer .* headers and a C\+\+17 compiler \(.*\)\. .*\n", run.stderr)
    assert installs in run.stderr
    assert packages <= set(run.stderr.split())
    assert "pip" not in system.calls().replace("ensurepip", "")


@pytest.mark.parametrize("distribution", ["Debian", "Fedora", "Arch"])
def test_readme_has_a_line_with_all_of_it(distribution: str) -> None:
    _, installs, packages = DISTRIBUTIONS[distribution]
    readme = (CLONE / "README.md").read_text(encoding="utf-8")
    (line,) = re.findall(rf"\| {distribution}.*\| `sudo {re.escape(installs)} ([^`]+)` \|", readme)
    implied = {"python3"}  # by python3-devel
    assert packages - implied < set(line.split())
    assert {"git", "make"} < set(line.split())


def test_on_another_distribution_packages_are_named_without_a_command(system: System) -> None:
    system.os_release.unlink()
    run = system.set_up(NO_PYTHON="1")
    assert run.returncode == 1
    assert "install what your distribution calls" in run.stderr


@pytest.mark.parametrize(
    ("lacks", "packages"),
    [({"NO_COMPILER": "1"}, "g++"), ({"NO_HEADERS": "1"}, "python3-dev"), ({"CXX": "absent"}, "g++")],
)
def test_without_a_compiler_or_headers_the_rest_is_set_up_and_says_why(
    system: System, monkeypatch: pytest.MonkeyPatch, lacks: dict[str, str], packages: str
) -> None:
    run = system.set_up(**lacks)
    assert run.returncode == 0, run.stderr
    (line,) = [line for line in run.stdout.splitlines() if line.startswith("Missing")]
    assert line.endswith(f"apt install {packages}")
    assert "--fresh" not in system.calls()
    (record,) = (system.clone / "py_backends/_compiled").glob("build.*.json")
    written = json.loads(record.read_text(encoding="utf-8"))
    monkeypatch.setattr(_compiled, "build", lambda: written)
    with pytest.raises(BackendUnavailable, match="the system lacks") as unavailable:
        _compiled.load("never_built")
    assert unavailable.value.fix is not None
    assert f"apt install {packages}, then run make again" in unavailable.value.fix

    assert system.set_up().stdout.splitlines() == ["Building the extension"], "once it is there, it is used"
    assert "--fresh" in system.calls()


def test_a_failed_configuration_is_begun_anew(system: System) -> None:
    failed = system.set_up(CMAKE_FAILS="1")
    assert failed.returncode == 1
    assert (system.clone / "build/release/CMakeCache.txt").exists(), "which says nothing about how it ended"
    system.calls()
    assert system.set_up().returncode == 0
    assert "--fresh" in system.calls()


def test_a_failed_installation_is_begun_anew(system: System) -> None:
    assert system.set_up(DURING_PIP="exit 1").returncode == 1
    system.calls()
    assert system.set_up().returncode == 0
    assert "venv --clear" in system.calls()


def test_after_a_kill_the_environment_is_made_anew_when_what_was_left_at_work_has_ended(system: System) -> None:
    pip = 'echo pip begins >>"$LOG"; sleep 1; echo pip ends >>"$LOG"'
    with system.start(DURING_PIP=pip) as killed:
        while "pip begins" not in (system.log.read_text(encoding="utf-8") if system.log.exists() else ""):
            time.sleep(0.01)
        os.kill(killed.pid, signal.SIGKILL)  # and not the pip that it has started
        run = system.set_up()
        killed.communicate(timeout=60)
    assert run.returncode == 0
    assert "Waiting for another make" in run.stdout
    called = system.calls()
    assert called.index("pip begins") < called.index("pip ends") < called.rindex("venv --clear")


def test_an_environment_without_pip_is_made_anew(system: System) -> None:
    python = system.clone / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    python.chmod(0o755)
    assert system.set_up().returncode == 0
    assert "venv --clear" in system.calls()


def test_a_cdpath_leads_nowhere_else(system: System, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    (foreign / "cmake").mkdir(parents=True)
    (foreign / ".venv").mkdir()
    run = system.set_up(CDPATH=str(foreign))
    assert (run.returncode, run.stderr) == (0, "")
    assert sorted(path.name for path in foreign.iterdir()) == [".venv", "cmake"]
    assert (system.clone / ".venv/bin/python").exists()


def test_a_clone_is_the_same_by_a_link(system: System, tmp_path: Path) -> None:
    system.set_up()
    system.calls()
    (link := tmp_path / "link").symlink_to(system.clone)
    assert system.set_up(PWD=str(link)).returncode == 0
    assert not {"pip install", "--fresh"} & set(re.findall("pip install|--fresh", system.calls()))


def test_a_users_settings_of_pip_send_packages_nowhere_else(system: System) -> None:
    """They may stand in pip.conf too, which a variable outweighs. Where packages come from is the user's to say."""
    told = 'echo "user $PIP_USER, target $PIP_TARGET, dry $PIP_DRY_RUN, index $PIP_INDEX_URL" >>"$LOG"'
    settings = {"PIP_USER": "1", "PIP_TARGET": "/elsewhere", "PIP_DRY_RUN": "1", "PIP_INDEX_URL": "https://own"}
    assert system.set_up(DURING_PIP=told, **settings).returncode == 0
    assert "user 0, target , dry 0, index https://own" in system.calls()


def test_it_names_the_python_to_take_and_sets_nothing_up(system: System) -> None:
    """For `make wheel`, which can do without none of it."""
    run = system.set_up("--python")
    assert (run.returncode, run.stdout, run.stderr) == (0, "python3\n", "")
    run = system.set_up("--python", NO_COMPILER="1")
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith("Missing: a C++17 compiler (g++ 11 or newer, or clang 14 or newer). ")
    assert "pip" not in system.calls().replace("ensurepip", "")


def test_equal_large_files_lie_on_the_disk_once(tmp_path: Path) -> None:
    """Wheels bring a library under several names. Others, smaller ones and those of other rights stay what they are."""
    large, other = b"library" * 200_000, b"another" * 200_000
    names = {"libx.so": large, "libx.so.1": large, "liby.so": other, "small": b"x", "small_too": b"x", "private": large}
    for name, content in names.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "private").chmod(0o600)
    (tmp_path / "libx.so.0").symlink_to("libx.so")
    subprocess.run([sys.executable, CLONE / "cmake" / "link_equal.py", tmp_path], check=True)
    assert {name: (tmp_path / name).read_bytes() for name in names} == names
    places: dict[int, set[str]] = {}
    for name in names:
        places.setdefault((tmp_path / name).stat().st_ino, set()).add(name)
    assert sorted(map(sorted, places.values())) == [
        ["libx.so", "libx.so.1"], ["liby.so"], ["private"], ["small"], ["small_too"],
    ]  # fmt: skip
    assert (tmp_path / "libx.so.0").is_symlink()
    assert len(list(tmp_path.iterdir())) == len(names) + 1
