"""What is said to be there does start, and what is said to bring it pip can install."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import platformdirs
import pytest
from commands import CLONE

import py_backends
from py_backends import install, registry
from py_backends.backend import _opencl_drivers, _opencl_launch, opencl
from py_backends.errors import BackendUnavailable
from py_backends.install import pip, pip_install
from py_backends.workers.probe import probe

PROJECT = tomllib.loads((CLONE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = sorted(PROJECT["optional-dependencies"])


def prepared(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Have every process that Python starts from here on run some code first."""
    (folder / "sitecustomize.py").write_text(code, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(folder))


@pytest.mark.numba_cuda
def test_a_simulator_that_does_not_start_is_missing_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine without CUDA's libraries, before the extra `cpu` brought them."""
    lacks = """
import os
if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
    import numba.cuda
    def jit(*_):
        raise RuntimeError('Failure finding "libcudart.so.13 or libcudart.so.12"')
    numba.cuda.jit = jit
"""
    ((_, before),) = probe(["numba_cuda"])
    if not before.emulated:
        pytest.skip("numba_cuda is not emulated here: there is a GPU")
    prepared(tmp_path, monkeypatch, lacks)
    ((_, target),) = probe(["numba_cuda"])
    assert (target.name, target.available) == ("emulated", False)
    assert (
        target.reason == 'Numba runs no kernel in its simulator: Failure finding "libcudart.so.13 or libcudart.so.12"'
    )
    assert target.fix == pip_install("cpu")


@pytest.mark.opencl
def test_a_driver_that_compiles_nothing_is_missing_with_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As PoCL's wheel says on a CPU that is newer than it."""
    refuses = """
import os, sys
if sys.argv[0] == "-m" or "worker" in sys.argv[0]:
    from py_backends.backend import _opencl_drivers
    _opencl_drivers.find()
    import pyopencl as cl
    def build(*_, **__):
        raise cl.RuntimeError("clBuildProgram failed: BUILD_PROGRAM_FAILURE\\n\\nerror: unknown target CPU 'generic'")
    cl.Program.build = build
"""
    prepared(tmp_path, monkeypatch, refuses)
    targets = [target for _, target in probe(["opencl"])]
    assert targets
    for target in targets:
        assert not target.available
        assert target.reason == "its driver compiles no kernel here: error: unknown target CPU 'generic'"
        assert target.device


@pytest.mark.opencl
@pytest.mark.parametrize("aborts", [True, False])
def test_a_driver_that_aborts_without_a_linker_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, aborts: bool
) -> None:
    """As PoCL's wheel does on a system without a compiler: its rows had crashed."""
    driver = next(iter(opencl._devices().values())).platform.name
    monkeypatch.setattr(_opencl_launch, "_POCL", driver)
    _opencl_launch._can_launch.cache_clear()
    launches = f"""
import os, sys
if "py_backends.backend._opencl_launch" in sys.orig_argv:
    from py_backends.backend import _opencl_drivers
    _opencl_drivers.find()
    import pyopencl as cl
    cl.enqueue_nd_range_kernel = lambda *_: os.abort() if {aborts} else os._exit(0)
"""
    prepared(tmp_path, monkeypatch, launches)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BackendUnavailable, match="linker") if aborts else contextlib.nullcontext():
        _opencl_launch.check(driver)
    _opencl_launch.check("another driver")
    missing = [target for target in registry.backend("opencl").targets() if "linker" in (target.reason or "")]
    assert bool(missing) == aborts
    for target in missing:
        assert target.reason == "its driver needs the linker ld to launch kernels"
        assert target.fix == "install binutils, which has it"
    linker = tmp_path / "ld"
    linker.touch(0o755)
    _opencl_launch.check(driver)
    _opencl_launch._can_launch.cache_clear()


@pytest.fixture
def _a_plain_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clone that is on the path, and not installed as editable."""
    monkeypatch.setattr(install, "_is_editable", lambda: False)


def test_of_drivers_whose_files_are_gone_the_files_are_written_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As cleaners of temporary folders leave them: else every OpenCL and SYCL device is missing from then on."""
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda _: tmp_path)
    for _ in range(2):
        folder = _opencl_drivers._folder_of(["/opt/libfirst.so", "/opt/libsecond.so"])
        assert folder
        assert [file.read_text() for file in sorted(folder.iterdir())] == ["/opt/libfirst.so\n", "/opt/libsecond.so\n"]
        next(folder.iterdir()).unlink()


def test_a_clone_that_is_installed_as_editable_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """pip would replace it by a copy, which no edit changes."""
    origin, requires = (
        '{"dir_info": {"editable": true}, "url": "file:///clone"}',
        ['matplotlib>=3; extra == "pictures"'],
    )
    made = SimpleNamespace(read_text=lambda _: origin, requires=requires)
    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: made)
    monkeypatch.chdir(CLONE)
    assert pip_install("pictures") == f'{pip()} install "matplotlib>=3"'


def test_an_environment_without_pip_gets_it_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    python = shlex.split(pip())[0]
    assert pip() == f"{python} -m ensurepip && {python} -m pip"


@pytest.mark.usefixtures("_a_plain_clone")
@pytest.mark.parametrize("extra", EXTRAS)
def test_in_a_clone_pip_is_given_the_clone(extra: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(CLONE)
    assert pip_install(extra) == f'{pip()} install ".[{extra}]"'
    monkeypatch.chdir(tmp_path)
    assert pip_install(extra) == f'{pip()} install "{CLONE}[{extra}]"'


@pytest.mark.usefixtures("_a_plain_clone")
def test_in_a_deleted_folder_there_is_a_command_all_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pip_install("cpu") == f'{shlex.quote(sys.executable)} -m pip install "{CLONE}[cpu]"'


def test_a_shell_takes_nothing_of_a_folder_s_name_for_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clone = tmp_path / "a$HOME `b`"
    monkeypatch.setattr(install.py_backends, "__file__", str(clone / "py_backends" / "__init__.py"))
    monkeypatch.setattr(install, "_is_editable", lambda: False)
    clone.mkdir()
    (clone / "pyproject.toml").touch()
    assert shlex.split(pip_install("cpu"))[-1] == f"{clone}[cpu]"
    echoed = subprocess.run(["/bin/sh", "-c", f"echo {pip_install('cpu')}"], capture_output=True, text=True, check=True)
    assert echoed.stdout.endswith(f"{clone}[cpu]\n")


@pytest.mark.parametrize(
    ("python", "in_path", "command"),
    [
        ("env/bin/python", "env/bin", "pip"),
        ("env/bin/python", "usr/bin", "env/bin/python -m pip"),
        ("my env/bin/python", "nothing", "'my env/bin/python' -m pip"),
        ("/opt/python/bin/python3", "usr/bin", "/opt/python/bin/python3 -m pip"),
    ],
)
def test_pip_is_that_of_the_interpreter(
    python: str, in_path: str, command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A learner who ran make has an environment that is not on the path, and Debian's own pip installs nothing."""
    for folder in ("env/bin", "usr/bin"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "pip").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / python))
    monkeypatch.setenv("PATH", str(tmp_path / in_path))
    assert pip() == command


@pytest.mark.parametrize("extra", EXTRAS)
def test_elsewhere_pip_is_given_what_the_metadata_require(
    extra: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """So that a fix works from a wheel too, before anything is published, and after."""
    monkeypatch.setattr(py_backends, "__file__", str(tmp_path / "py_backends/__init__.py"))
    monkeypatch.setattr(install, "pip", lambda: "pip")
    command, verb, *wanted = shlex.split(pip_install(extra))
    assert (command, verb) == ("pip", "install")
    names = {re.split(r"[\[<>=!~ ]", requirement)[0] for requirement in wanted}
    assert "py-backends" not in names
    assert names == brought_by(extra), "each requirement, and those of the extras that it names"
    assert not any(";" in requirement or "extra ==" in requirement for requirement in wanted)


def brought_by(extra: str) -> set[str]:
    """The names of what an extra brings to this machine, by pyproject.toml."""
    from packaging.requirements import Requirement

    names = set()
    for requirement in map(Requirement, PROJECT["optional-dependencies"][extra]):
        if requirement.name == PROJECT["name"]:
            names |= {name for other in requirement.extras for name in brought_by(other)}
        elif requirement.marker is None or requirement.marker.evaluate():
            names.add(requirement.name)
    return names


def test_an_extra_that_the_installation_does_not_know_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def metadata(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(py_backends, "__file__", str(tmp_path / "py_backends/__init__.py"))
    assert pip_install("syckl") == "install what the extra syckl in pyproject.toml names"
    monkeypatch.setattr(importlib.metadata, "metadata", metadata)
    assert pip_install("sycl") == "install what the extra sycl in pyproject.toml names"


def test_what_has_no_wheels_for_a_machine_is_said_to_have_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(py_backends, "__file__", str(tmp_path / "py_backends/__init__.py"))
    elsewhere = SimpleNamespace(requires=lambda _: ['dpctl>=0.22; platform_machine == "vax" and extra == "sycl"'])
    monkeypatch.setattr(importlib.metadata, "requires", elsewhere.requires)
    assert pip_install("sycl") == "there are no wheels of it for this machine"


def test_no_fix_names_a_distribution_that_nobody_has_published() -> None:
    folders = (
        "py_backends/**/*.py",
        "tests/*.py",
        "cmake/*",
        "Makefile",
        "*.md",
        "docs/*.md",
        "docs/*/*.md",
        "docs/results/*.json",
    )
    sources = [path for folder in folders for path in CLONE.glob(folder) if path.is_file()]
    unpublished = re.compile(r"pip install \\?\"py-backends")
    named = [path.name for path in sources if unpublished.search(path.read_text(encoding="utf-8"))]
    assert len(sources) > 100
    assert named == []
