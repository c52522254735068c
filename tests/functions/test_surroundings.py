"""Variables, folders and limits that libraries do not bear: calls work or say why, as doctor does, and none aborts."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import CLONE, LONGEST, environment
from homes import python_at_home

from py_backends.backend import _opencl_drivers, _opencl_launch, _wheels, opencl
from py_backends.errors import BackendUnavailable
from py_backends.functions import trial

pytestmark = pytest.mark.slow

SPACED = "내 작업 (it's)"
CALL = """
import sys
import numpy as np
import py_backends as pb
a = np.ones((64, 64), "f4")
try:
    backend, _, target = sys.argv[1].partition(" ")
    assert (pb.matmul(a, a, backend=backend, target=target or None) == 64).all()
    print("works")
except pb.BackendUnavailable as unavailable:
    print(unavailable.reason.removeprefix(f"{sys.argv[1]} is not available: "), unavailable.fix, sep="\\n")
"""


def call(backend: str, script: str = CALL, **variables: str) -> str:
    """What a call in a process of its own says, which has to survive it."""
    run = subprocess.run(
        [sys.executable, "-c", script, backend],
        cwd=CLONE,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def doctor(backend: str, **variables: str) -> list[str]:
    """What doctor says of a target, or of the one that calls take: that it works, or the reason and the fix."""
    script = """
import sys
from py_backends.workers.probe import probe
backend, _, name = sys.argv[1].partition(" ")
targets = [target for _, target in probe([backend]) if target.name == (name or target.name)]
target = next((each for each in targets if each.available), targets[0])
print("works" if target.available else f"{target.reason}\\n{target.fix}")
"""
    return call(backend, script, **variables).splitlines()


class TestPocl:
    """It ends the process where it cannot keep a kernel, or not load it. This needs no PoCL: it is about folders."""

    FOUND = """
import os
from py_backends.backend import _opencl_drivers
_opencl_drivers.find()
print(_opencl_drivers.why_pocl_would_abort())
print(os.environ.get("POCL_CACHE_DIR"))
"""

    @pytest.mark.parametrize("options", ["size=1m", "size=100m,noexec", "size=100m"])
    def test_a_home_of_no_use_to_it_is_left_alone(self, tmp_path: Path, options: str) -> None:
        home = tmp_path / "home"
        run = python_at_home(home, options, self.FOUND)
        why, folder = run.stdout.split()
        assert why == "None"
        assert (folder == "None") == (options == "size=100m")
        assert not Path(folder).is_relative_to(home)

    @pytest.mark.opencl
    def test_a_folder_that_the_user_names_stays(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Then it is not available, and not even tried."""
        device = next(iter(opencl._devices().values()))
        monkeypatch.setattr(_opencl_launch, "_POCL", device.platform.name)
        monkeypatch.setattr(opencl, "_built", lambda *_: pytest.fail("it would abort"))
        monkeypatch.setenv("POCL_CACHE_DIR", "/proc/nowhere")
        _opencl_drivers.find()
        assert os.environ["POCL_CACHE_DIR"] == "/proc/nowhere"
        with pytest.raises(BackendUnavailable, match="/proc cannot be used"):
            opencl._check_driver(device)


class TestPathWithSpaces:
    """Intel's runtime for CPUs asks the system where it lies, and takes that to end at the first space."""

    @pytest.mark.opencl
    def test_its_runtime_works(self, tmp_path: Path) -> None:
        library = Path(next(each for each in _opencl_drivers._from_wheels() if Path(each).name == "libintelocl.so"))
        spaced = tmp_path / SPACED
        spaced.mkdir()
        for each in filter(Path.is_file, library.parent.iterdir()):
            (spaced / each.name).symlink_to(each)
        (spaced / library.name).unlink()
        shutil.copyfile(library, spaced / library.name)
        script = f"""
from py_backends.backend import _opencl_drivers
_opencl_drivers._from_wheels = lambda: [{str(spaced / library.name)!r}]
{CALL}
import dpctl
dpctl.SyclContext(dpctl.get_devices()[0])
"""
        others = {"OCL_ICD_VENDORS": "", "OCL_ICD_FILENAMES": ""}  # which this process may have set
        assert call("opencl intel-cpu", script, XDG_CACHE_HOME=str(tmp_path / "cache"), **others) == "works"

    @pytest.fixture
    def library(self, tmp_path: Path) -> Path:
        library = tmp_path / SPACED / "libintelocl.so"
        library.parent.mkdir()
        for name in (library.name, "cl.cfg"):
            (library.parent / name).write_text(name)
        return library

    @pytest.mark.parametrize("links", [True, False])
    def test_it_has_a_second_name(
        self, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
    ) -> None:
        """On another file system it is a copy."""

        def refuse(*_: Any) -> None:
            raise OSError("Invalid cross-device link")

        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        if not links:
            monkeypatch.setattr(os, "link", refuse)
        for _ in range(2):
            other = Path(_opencl_drivers._in_one_word(str(library)))
            assert " " not in str(other)
            assert other.samefile(library) == links
            assert other.read_text() == library.name
            assert (other.parent / "cl.cfg").read_text() == "cl.cfg"
            (other.parent / "cl.cfg").unlink()  # as cleaners of temporary folders do

    def test_what_is_left_of_a_deleted_environment_goes(
        self, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        first = Path(_opencl_drivers._in_one_word(str(library)))
        library.parent.rename(tmp_path / "moved here")
        second = Path(_opencl_drivers._in_one_word(str(tmp_path / "moved here" / library.name)))
        assert second.exists()
        assert first.parent.exists(), "another machine with the same home may use it"
        os.utime(first.parent, (0, 0))
        _opencl_drivers._in_one_word(str(tmp_path / "moved here" / library.name))
        assert (second.exists(), first.parent.exists()) == (True, False)

    def test_without_a_place_for_that_it_is_said(self, library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("py_backends.system.cache_folder.find", lambda *_, **__: None)
        monkeypatch.setenv("OCL_ICD_VENDORS", _opencl_drivers._in_one_word(str(library)))
        reason, fix = _opencl_drivers.why_no_context() or ("", "")
        assert str(library.parent) in reason
        assert "TMPDIR" in fix


@pytest.mark.parametrize(
    ("backend", "variable"),
    [
        pytest.param("sycl", "ONEAPI_DEVICE_SELECTOR=*:gpu", marks=pytest.mark.sycl),
        pytest.param("onednn", "ONEAPI_DEVICE_SELECTOR=*:gpu", marks=pytest.mark.onednn),
        pytest.param("sycl", "CL_CONFIG_CPU_TARGET_ARCH=none", marks=pytest.mark.sycl),
        pytest.param("onednn", "CL_CONFIG_CPU_TARGET_ARCH=none", marks=pytest.mark.onednn),
        pytest.param("opencl intel-cpu", "CL_CONFIG_CPU_TARGET_ARCH=none", marks=pytest.mark.opencl),
        pytest.param("numba_cpu", "NUMBA_THREADING_LAYER=none", marks=pytest.mark.numba_cpu),
        pytest.param(
            "mkl", "MKL_INTERFACE_LAYER=GNU", marks=pytest.mark.mkl
        ),  # ends the process, as its part is missing
        pytest.param("onednn", "ONEAPI_DEVICE_SELECTOR=none", marks=pytest.mark.onednn),  # is invalid, which ends it
    ],
)
def test_a_variable_that_a_library_does_not_bear_is_named(backend: str, variable: str) -> None:
    """In calls as in doctor, and nothing that is installed is to be installed."""
    name, _, value = variable.partition("=")
    reason, fix = call(backend, **{name: value}).splitlines()
    assert variable in reason
    assert fix == f"unset {name}"
    assert doctor(backend, **{name: value}) == [reason, fix]


@pytest.mark.sycl
def test_a_temporary_folder_of_another_machine_is_not_used(tmp_path: Path) -> None:
    """As TMPDIR may name one in a job of a cluster: the compiler of SYCL took no other."""
    script = """
import os
from py_backends.backend import _sycl
_sycl.devices("sycl")
print(os.environ["TMPDIR"])
"""
    assert Path(call("sycl", script, TMPDIR=str(tmp_path / "missing"))).is_dir()
    assert call("sycl", script, TMPDIR=str(tmp_path)) == str(tmp_path)


@pytest.mark.parametrize(
    ("backend", "variable"),
    [
        pytest.param("mkl", "MKL_THREADING_LAYER", marks=pytest.mark.mkl),
        pytest.param("numba_cpu", "NUMBA_THREADING_LAYER", marks=pytest.mark.numba_cpu),
    ],
)
def test_tbb_is_found_where_its_wheel_put_it(backend: str, variable: str) -> None:
    """MKL ended the process, and Numba raised ValueError: neither looks there."""
    try:
        _wheels.library("tbb", "TBB", "libtbb.so.12")
    except BackendUnavailable as missing:
        pytest.skip(missing.reason)
    assert call(backend, **{variable: "tbb"}) == "works"
    assert doctor(backend, **{variable: "tbb"}) == ["works"]


class TestTrial:
    """A child computes first where a library may end the process."""

    @pytest.fixture
    def ends(self, tmp_path: Path) -> Path:
        """A folder whose code makes every process end that asks for NumPy's targets, if there is a variable."""
        (tmp_path / "sitecustomize.py").write_text("""
import os
import sys
from py_backends.backend import numpy
targets = numpy.Backend.targets
def abort(self):
    if os.environ.get("MADE_UP_LAYER"):
        print("no such layer", file=sys.stderr, flush=True)
        with open(f"/dev/shm/__KMP_REGISTERED_LIB_{os.getpid()}_{os.getuid()}", "w") as registration:
            registration.write("made up")
        os.abort()
    return targets(self)
numpy.Backend.targets, numpy.Backend.obeys = abort, ("MADE_UP_",)
""")
        return tmp_path

    def test_a_library_ends_the_child_alone(self, ends: Path) -> None:
        given = {"PYTHONPATH": os.pathsep.join([str(ends), str(CLONE)]), "MADE_UP_LAYER": "7"}
        reason, fix = call("numpy", **given).splitlines()
        assert "MADE_UP_LAYER=7: no such layer" in reason
        assert fix == "unset MADE_UP_LAYER"
        assert doctor("numpy", **given) == [reason, fix]
        assert call("numpy", **given | {"MADE_UP_LAYER": ""}) == "works"
        registered = Path("/dev/shm").glob(f"__KMP_REGISTERED_LIB_*_{os.getuid()}")  # noqa: S108  # where Linux keeps what processes share
        assert not [each for each in registered if each.read_text(errors="replace") == "made up"]

    def test_a_caller_may_ignore_how_its_children_end(self, ends: Path) -> None:
        """As servers do: then Linux says of each that it ended well. The caller goes on ignoring it."""
        script = f"""
import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
{CALL}
print(signal.getsignal(signal.SIGCHLD).name)
"""
        given = {"PYTHONPATH": os.pathsep.join([str(ends), str(CLONE)]), "MADE_UP_LAYER": "7"}
        reason, _, handler = call("numpy", script, **given).splitlines()
        assert "MADE_UP_LAYER=7: no such layer" in reason
        assert handler == "SIG_IGN"

    def test_nothing_is_tried_where_nothing_is_unusual(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A trial takes as long as a first call."""
        monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a trial"))
        trial.check("numpy", ("MADE_UP_",))

    def test_a_low_limit_is_one_cause(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(resource, "getrlimit", lambda which: (2**20 if which == resource.RLIMIT_AS else -1, -1))
        monkeypatch.setattr(trial, "_ended", lambda *_: "out of memory")
        with pytest.raises(BackendUnavailable, match="ulimit -v 1024: out of memory") as caught:
            trial.check("numpy", ())
        assert caught.value.fix == "raise ulimit -v"

    def test_what_python_raises_there_is_left_to_the_caller(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MADE_UP_LAYER", "1")
        trial.check("no such backend", ("MADE_UP_",))
