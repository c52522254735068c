"""What a wheel and the source distribution hold, and that a check of wheels sees what would be missing elsewhere.

`make wheel` builds and checks a real wheel, which takes minutes; `.ci/wheels` does so on bare systems. Here nothing of
the extension is compiled: a wheel is made of the clone's files, and of libraries that stand in for the modules.
"""

from __future__ import annotations

import importlib.util
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from commands import CLONE
from compilers import gcc_or_skip

import py_backends

COMPILED = "py_backends/_compiled"
VERSION = py_backends.__version__
ABI = sysconfig.get_config_var("SOABI")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="some modules are built on x86-64 alone"),
]

Wheel = Callable[..., Path]


def script(name: str) -> ModuleType:
    """One of those in cmake/."""
    specification = importlib.util.spec_from_file_location(name, CLONE / "cmake" / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def check() -> ModuleType:
    return script("check_wheel")


def library(folder: Path, name: str, *options: str) -> bytes:
    """A shared library of nothing, linked with these options."""
    path = folder / name
    compiler = gcc_or_skip()
    command = [compiler, "-shared", "-nostdlib", "-x", "c++", "-", "-o", path, "-Wl,--enable-new-dtags", *options]
    subprocess.run(command, input=b"", check=True, capture_output=True, timeout=60)
    return path.read_bytes()


@pytest.fixture(scope="session")
def modules(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Stand-ins for what `make wheel` compiles and repairs."""
    folder = tmp_path_factory.mktemp("modules")
    for name in ("libgomp-1234.so.1.0.0", "libsycl.so.9", "libtbb.so.12"):
        library(folder, name, f"-Wl,-soname,{name}")
    to_libraries = "-Wl,-rpath,$ORIGIN/../../py_backends.libs"
    openmp = f"-L{folder}", "-Wl,--no-as-needed", "-l:libgomp-1234.so.1.0.0", to_libraries
    to_environment = "-Wl,-rpath,$ORIGIN/../../../.."
    sycl = f"-L{folder}", "-Wl,--no-as-needed", "-l:libsycl.so.9", to_environment
    tbb = f"-L{folder}", "-Wl,--no-as-needed", "-l:libtbb.so.12", to_environment
    options = {"cpp": (), "stdpar": tbb, "sycl_compiler": sycl, **dict.fromkeys(("openmp", "avx", "ceilings"), openmp)}
    made = {f"{COMPILED}/{name}.{ABI}.so": library(folder, name, *links) for name, links in options.items()}
    gomp = (folder / "libgomp-1234.so.1.0.0").read_bytes()
    record = b'{"compiler": "none", "left_out": {}}'
    made |= {
        f"{COMPILED}/headers/{name}": b"" for name in ("NOTICE", "c++/algorithm", "c++/bits/stl_algo.h", "c/stdlib.h")
    }
    return made | {"py_backends.libs/libgomp-1234.so.1.0.0": gomp, f"{COMPILED}/build.{ABI}.json": record}


@pytest.fixture
def wheel(tmp_path: Path, check: ModuleType, modules: dict[str, bytes]) -> Wheel:
    """Makes one as `make wheel` does, but for what is changed: files by name, None for one that is left out."""

    def make(changed: dict[str, bytes | None] | None = None, name: str | None = None) -> Path:
        places = {f"py_backends/{each}/": CLONE / each for each in ("kernels", "cpp_ext")}
        places["py_backends/"] = CLONE / "py_backends"
        files: dict[str, bytes | None] = dict(modules)
        for file in check.expected():
            folder = next(place for place in places if file.startswith(place))
            files[file] = (places[folder] / file.removeprefix(folder)).read_bytes()
        files[f"py_backends-{VERSION}.dist-info/METADATA"] = b""
        path = tmp_path / (name or f"py_backends-{VERSION}-cp311-cp311-manylinux_2_34_x86_64.whl")
        with zipfile.ZipFile(path, "w") as archive:
            for file, content in (files | (changed or {})).items():
                if content is not None:
                    archive.writestr(file, content)
        return path

    return make


class TestCheck:
    def test_a_sound_wheel_has_no_fault(self, check: ModuleType, wheel: Wheel) -> None:
        assert check.faults(wheel()) == []

    @pytest.mark.parametrize(
        "left_out",
        [
            f"{COMPILED}/sycl_compiler.{ABI}.so",
            f"{COMPILED}/ceilings.{ABI}.so",
            f"{COMPILED}/avx.pyi",
            f"{COMPILED}/build.{ABI}.json",
            f"{COMPILED}/headers/c++/algorithm",
            f"{COMPILED}/headers/NOTICE",
            "py_backends/py.typed",
            "py_backends/kernels/matmul/tuned/cuda.cu",
            "py_backends/kernels/workspace.hpp",
            "py_backends/cpp_ext/own_part.cpp",
            "py_backends/commands/report/templates/page.html",
            "py_backends/hello/openmp.cpp",
            "py_backends/hello/emulated/cupy.py",
        ],
    )
    def test_what_is_missing_is_named(self, check: ModuleType, wheel: Wheel, left_out: str) -> None:
        (fault,) = check.faults(wheel({left_out: None}))
        assert re.search(r"missing|0 records", fault)

    @pytest.mark.parametrize("name", ["tests/conftest.py", "py_backends/cmake/set_up.sh", "docs/draw.py"])
    def test_what_is_not_for_users_is_named(self, check: ModuleType, wheel: Wheel, name: str) -> None:
        (fault,) = check.faults(wheel({name: b""}))
        assert fault.startswith(f"{name} ")

    def test_a_module_that_was_left_out_is_named_with_the_reason(self, check: ModuleType, wheel: Wheel) -> None:
        record = b'{"left_out": {"openmp": {"reason": "no OpenMP here", "fix": ""}}}'
        found = check.faults(wheel({f"{COMPILED}/openmp.{ABI}.so": None, f"{COMPILED}/build.{ABI}.json": record}))
        (fault,) = found
        assert re.search("openmp .*: no OpenMP here", fault)

    @pytest.mark.parametrize(
        ("module", "options", "words"),
        [
            ("cpp", ["-Wl,-rpath,/home/somebody/lib"], "looks for libraries in /home/somebody/lib"),
            ("cpp", ["-Wl,--disable-new-dtags", "-Wl,-rpath,/home/somebody/lib"], "a folder of one machine"),
            ("sycl_compiler", [], "does not look for libsycl.so.* in the environment's lib"),
            ("stdpar", [], "does not look for libtbb.so.* in the environment's lib"),
        ],
    )
    def test_where_a_module_looks_for_libraries(
        self, check: ModuleType, wheel: Wheel, tmp_path: Path, module: str, options: list[str], words: str
    ) -> None:
        (fault,) = check.faults(wheel({f"{COMPILED}/{module}.{ABI}.so": library(tmp_path, "module", *options)}))
        assert fault.startswith(f"the module {module} ")
        assert words in fault

    def test_a_library_that_is_not_in_the_wheel(self, check: ModuleType, wheel: Wheel) -> None:
        found = check.faults(wheel({"py_backends.libs/libgomp-1234.so.1.0.0": None}))
        modules = "avx", "ceilings", "openmp"
        for name, fault in zip(modules, found, strict=True):
            assert re.search(rf"\b{name} .*libgomp-1234\.so\.1\.0\.0", fault)

    def test_the_sycl_runtime_stays_outside(self, check: ModuleType, wheel: Wheel) -> None:
        (fault,) = check.faults(wheel({"py_backends.libs/libsycl-1234.so.9": b""}))
        assert fault.startswith("py_backends.libs/libsycl-1234.so.9 ")

    def test_its_name(self, check: ModuleType, wheel: Wheel) -> None:
        (version,) = check.faults(wheel(name="py_backends-7.1-cp311-cp311-manylinux_2_34_x86_64.whl"))
        assert re.search(rf"\b7\.1\b.* {re.escape(VERSION)}$", version)
        (tag,) = check.faults(wheel(name=f"py_backends-{VERSION}-cp311-cp311-linux_x86_64.whl"))
        assert "repaired" in tag

    def test_a_fault_ends_with_1(self, wheel: Wheel) -> None:
        command = [sys.executable, CLONE / "cmake" / "check_wheel.py"]
        for changed, code in (({}, 0), ({"tests/conftest.py": b""}, 1)):
            run = subprocess.run([*command, wheel(changed)], capture_output=True, text=True, check=False, timeout=60)
            assert run.returncode == code, run.stdout + run.stderr
        assert "tests/conftest.py" in run.stdout


class TestHeaders:
    """What a machine without a compiler compiles SYCL kernels with."""

    @pytest.fixture(scope="class")
    @classmethod
    def options(cls) -> list[str]:
        """Of the compiler, for SYCL's own headers."""
        pytest.importorskip("dpctl", reason='dpctl is not installed (to change that: pip install "dpctl")')
        command = [sys.executable, CLONE / "cmake" / "locate_sycl.py"]
        located = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        folders = located.stdout.strip().split(";")[1:]
        return ["-DSYCL_DISABLE_FSYCL_SYCLHPP_WARNING", *(f"-isystem{folder}" for folder in folders)]

    @pytest.fixture(scope="class")
    @classmethod
    def headers(cls, tmp_path_factory: pytest.TempPathFactory, options: list[str]) -> Path:
        compiler = gcc_or_skip()
        folder = tmp_path_factory.mktemp("module") / "headers"
        command = [sys.executable, CLONE / "cmake" / "collect_headers.py", folder, compiler, *options]
        subprocess.run(command, check=True, timeout=120)
        return folder

    def test_they_are_those_of_the_standard_library(self, headers: Path) -> None:
        names = {path.relative_to(headers).as_posix() for path in headers.rglob("*") if path.is_file()}
        assert names > {"NOTICE", "c++/algorithm", "c++/bits/stl_algo.h", "c++/bits/c++config.h", "c/stdlib.h"}
        own = {f"{owner}/{name}" for owner in ("c", "c++") for name in ("stddef.h", "immintrin.h", "sycl/sycl.hpp")}
        assert not names & own, "what others bring"
        assert len(names) < 1000

    def test_one_that_is_missing_ends_the_build(self, headers: Path, options: list[str], tmp_path: Path) -> None:
        shutil.copytree(headers, tmp_path, dirs_exist_ok=True)
        (tmp_path / "c" / "linux" / "types.h").unlink()
        with pytest.raises(SystemExit, match=r"'?linux/types\.h"):
            script("collect_headers").try_out(tmp_path, ["c++"], options)

    @pytest.mark.sycl
    def test_kernels_are_compiled_with_them(self, headers: Path) -> None:
        """And with no others: without one of them they are not compiled."""
        code = """
import sys, pathlib, numpy, py_backends
from py_backends.backend import _sycl
brought = _sycl.standard_headers(pathlib.Path(sys.argv[1]))
assert len(brought) == 3
_sycl.standard_headers = lambda folder: brought
a = numpy.arange(9, dtype=numpy.float32)
print(py_backends.vecadd(a, a, backend="sycl", variant="lecture").tolist() == (2 * a).tolist())"""
        command = [sys.executable, "-c", code, headers.parent]
        run = subprocess.run(command, cwd=CLONE, capture_output=True, text=True, check=False, timeout=120)
        assert run.stdout == "True\n", run.stderr
        (headers / "c++" / "algorithm").unlink()
        run = subprocess.run(command, cwd=CLONE, capture_output=True, text=True, check=False, timeout=120)
        assert "'algorithm'" in run.stderr


class TestBuild:
    """What scikit-build-core takes of the clone."""

    @pytest.fixture(scope="class")
    @classmethod
    def built(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        """A folder with the source distribution, a wheel, and in `again` the wheel of the source distribution."""
        pytest.importorskip("scikit_build_core", reason='pip install "scikit-build-core"')
        folder = tmp_path_factory.mktemp("built")
        cls.build("build_sdist(sys.argv[1])", CLONE, folder)
        cls.build(cls.WHEEL, CLONE, folder)
        archive = folder / f"py_backends-{VERSION}.tar.gz"
        tar = shutil.which("tar")  # and not tarfile: Python 3.11.2 has no filter, and 3.12 warns where there is none
        assert tar is not None
        subprocess.run([tar, "-xzf", archive, "-C", folder], check=True, timeout=60)
        cls.build(cls.WHEEL, folder / f"py_backends-{VERSION}", folder / "again")
        return folder

    WHEEL = "build_wheel(sys.argv[1], {'cmake.define.PY_BACKENDS_COMPILE': 'OFF'})"

    @staticmethod
    def build(call: str, source: Path, to: Path) -> None:
        code = f"import sys; from scikit_build_core.build import build_sdist, build_wheel; {call}"
        run = subprocess.run(
            [sys.executable, "-c", code, to], cwd=source, check=False, capture_output=True, text=True, timeout=120
        )
        assert run.returncode == 0, run.stdout + run.stderr

    def test_the_source_distribution_builds_the_same_wheel(self, built: Path) -> None:
        """But for what is compiled, which `.ci/wheels` compares."""

        def files(folder: Path) -> set[tuple[str, int]]:
            (path,) = folder.glob("*.whl")
            found = zipfile.ZipFile(path).infolist()
            return {(file.filename, file.CRC) for file in found if not file.filename.endswith("/RECORD")}

        assert files(built / "again") == files(built)

    def test_a_wheel_has_the_package_and_its_kernels(self, built: Path, check: ModuleType) -> None:
        (path,) = built.glob(f"py_backends-{VERSION}-*.whl")
        files = {name for name in zipfile.ZipFile(path).namelist() if ".dist-info/" not in name}
        assert files == check.expected()

    def test_a_source_distribution_has_all_but_the_affairs_of_the_repository(self, built: Path) -> None:
        if not (CLONE / ".git").exists():
            pytest.skip("not in a clone, which alone knows its files")
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=CLONE, check=True, capture_output=True, text=True, timeout=60).stdout
        kept = {name for name in listed.splitlines() if (CLONE / name).is_file()}
        wanted = {name for name in kept if not name.startswith((".ci/", ".github/"))} | {"PKG-INFO"}
        with tarfile.open(built / f"py_backends-{VERSION}.tar.gz") as archive:
            assert {name.partition("/")[2] for name in archive.getnames()} == wanted


def test_the_version_is_named_in_one_place() -> None:
    """Else a release would need more than one change, and forget one."""
    naming = re.compile(rf"(?<![\w.=<>]){re.escape(VERSION)}(?![\w.]*\d)")
    places = [CLONE / name for name in ("pyproject.toml", "CMakeLists.txt", "CMakePresets.json", "Makefile")]
    for folder in (".ci", ".github", "benchmarks", "cmake", "cpp_ext", "kernels", "py_backends"):
        places += [path for path in (CLONE / folder).rglob("*") if path.is_file()]
    places = [path for path in places if path.suffix not in (".so", ".pyc")]
    found = [path for path in places if naming.search(path.read_text(encoding="utf-8"))]
    assert found == [CLONE / "py_backends" / "__init__.py"]
