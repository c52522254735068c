"""What flags and generators of users do to the extension, and what they cannot change."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

import pytest
from commands import CLONE, Finished, environment
from compilers import clang, gcc_or_skip

from py_backends import registry
from py_backends.backend import _cpu_kernels
from py_backends.contract import KernelText

pytestmark = pytest.mark.slow

MODULES = ("CPP", "OPENMP", "STDPAR", "AVX", "CEILINGS", "SYCL")


def tool(name: str) -> str:
    """The environment's before the system's, which may be older."""
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which(name, path=beside)
    if found is None:
        pytest.skip(f"no {name} (to change that: pip install cmake ninja, and install binutils)")
    return found


def configure(folder: Path, module: str, *options: str, clone: Path = CLONE, **variables: str) -> Finished:
    """Configure a build of one module alone."""
    others = [f"-DPY_BACKENDS_{name}=OFF" for name in MODULES if name != module]
    places = [f"-DPython_EXECUTABLE={sys.executable}", f"-DPY_BACKENDS_PLACE={folder / 'modules'}"]
    command = [tool("cmake"), "-S", str(clone), "-B", str(folder), *others, *places, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment(**variables))


def printed(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def test_ceilings_are_optimised_in_a_debug_build_too(tmp_path: Path) -> None:
    """Kernels that are compiled at run time are optimised. Under ceilings that are not, they seem impossible."""
    configured = configure(tmp_path, "CEILINGS", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
    assert configured.returncode == 0, configured.stderr
    commands = json.loads((tmp_path / "compile_commands.json").read_text())
    levels = {
        Path(each["file"]).stem: [word for word in each["command"].split() if word.startswith("-O")]
        for each in commands
        if Path(each["file"]).parent.name == "ceilings"
    }
    assert levels
    assert all(given[-1:] == ["-O3"] for given in levels.values()), levels


@pytest.mark.nightly
@pytest.mark.skipif(platform.machine() != "x86_64", reason="this CPU has no sse (to change that: one of x86-64)")
def test_flags_of_users_change_neither_arithmetic_nor_instruction_sets(tmp_path: Path) -> None:
    """-ffast-math links code that flushes the subnormals of the whole process; -mavx2 would make AVX2 of the row sse.

    The generator has several configurations, of which the presets name the one to build.
    """
    objdump, nm = tool("objdump"), tool("nm")
    flags = {"CXXFLAGS": "-ffast-math -mavx2 -mfma -mavx512f", "CMAKE_GENERATOR": "Ninja Multi-Config"}
    tool("ninja")
    configured = configure(tmp_path, "CPP", "-DPY_BACKENDS_ONLY=sse", **flags)
    assert configured.returncode == 0, configured.stderr
    subprocess.run([tool("cmake"), "--build", tmp_path, "--config", "Release", "--target", "cpp"], check=True)
    (module,) = tmp_path.rglob("cpp.*.so")
    instances = list(tmp_path.rglob("cpp_*_sse.cpp.o"))
    assert instances
    assert "set_fast_math" not in printed(nm, module)
    of_avx = re.compile("vfmadd|ymm|zmm")
    assert not [each.name for each in instances if of_avx.search(printed(objdump, "-d", each))]


def test_an_instance_keeps_its_own_inline_functions(tmp_path: Path) -> None:
    """The linker would take one of them for all, and that could be the one for AVX-512."""
    compiler, objcopy = gcc_or_skip(), tool("objcopy")
    sources = {
        name: f"""
            inline int value = {value};
            template <typename T> inline __attribute__((noinline)) T level() {{ return value; }}
            struct Sets {{ virtual int set() {{ return level<int>(); }} }};
            extern int (*const {name})();
            int (*const {name})() = [] {{ static Sets sets; Sets* volatile any = &sets; return any->set(); }};"""
        for name, value in {"instance_avx512": 512, "instance_sse": 128}.items()
    }
    main = """
        #include <cstdio>
        extern int (*const instance_avx512)(), (*const instance_sse)();
        int main() { std::printf("%d %d", instance_avx512(), instance_sse()); }"""
    for name, text in {**sources, "main": main}.items():
        (tmp_path / f"{name}.cpp").write_text(text)
        flags = "-std=c++17", "-O1", "-fno-gnu-unique"
        printed(compiler, *flags, "-c", tmp_path / f"{name}.cpp", "-o", tmp_path / f"{name}.o")
    program, objects = tmp_path / "program", [tmp_path / f"{name}.o" for name in sources]

    def linked() -> str:
        printed(compiler, tmp_path / "main.o", *objects, "-o", program)
        return printed(program)

    assert linked() == "512 512", "else this shows nothing"
    parted = f"-DOBJECTS={';'.join(map(str, objects))}"
    printed(tool("cmake"), f"-DOBJCOPY={objcopy}", parted, "-P", CLONE / "cmake" / "part_instances.cmake")
    assert linked() == "512 128"


def test_a_build_of_what_is_built_compiles_nothing(tmp_path: Path) -> None:
    """The link changes objects. Newer than ninja's note of their headers, all were compiled again by every `make`."""
    tool("ninja")
    clone, build = tmp_path / "clone", tmp_path / "build"
    for folder in ("cmake", "cpp_ext", "kernels/vecadd"):
        shutil.copytree(CLONE / folder, clone / folder)
    (clone / "py_backends").mkdir()
    for file in (
        CLONE / "CMakeLists.txt",
        CLONE / "py_backends" / "source_head.py",
        *(CLONE / "kernels").glob("*.hpp"),
    ):
        shutil.copy(file, clone / file.relative_to(CLONE))
    of_one_set = "-DPY_BACKENDS_ONLY=sse;baseline"
    configured = configure(build, "CPP", of_one_set, "-DCMAKE_BUILD_TYPE=Debug", clone=clone, CMAKE_GENERATOR="Ninja")
    assert configured.returncode == 0, configured.stderr

    def built() -> list[str]:
        return re.findall(r"(Building|Linking) CXX", printed(tool("cmake"), "--build", build))

    assert {"Building", "Linking"} <= set(built())
    assert built() == []
    (instance,) = (build / "cpp").glob("cpp_vecadd_lecture_*.cpp")
    instance.touch()
    assert built() == ["Building", "Linking"]
    assert built() == [], "the link parts all objects again"


def test_what_cmake_cannot_read_of_a_problem_is_one_line(tmp_path: Path) -> None:
    """It is not run for CMake, and a name has no value then."""
    source = tmp_path / "lecture" / "cpp.cpp"
    source.parent.mkdir()
    source.write_text("// mine: c = a\n")
    (tmp_path / "problem.py").write_text("class Mine:\n    dtypes = DTYPES\n")
    command = [sys.executable, str(CLONE / "py_backends" / "source_head.py"), str(source), "baseline", ""]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "write the names of `dtypes` there" in done.stderr


def test_folders_may_have_names_that_a_shell_would_quote(tmp_path: Path) -> None:
    """pybind11 printed its folder as for a shell, with quotes, so that it was not found below such a one."""
    clone = tmp_path / "내 작업 (it's) a&b #1 $x"
    venv.create(clone / ".venv")
    python = clone / ".venv/bin/python"
    packages = printed(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    Path(packages, "pybind11").symlink_to(Path(pytest.importorskip("pybind11").__file__).parent)
    for name in ("CMakeLists.txt", "cmake", "cpp_ext", "kernels", "py_backends"):
        (clone / name).symlink_to(CLONE / name)
    configured = configure(clone / "build", "CPP", f"-DPython_EXECUTABLE={python}", clone=clone)
    assert configured.returncode == 0, configured.stderr
    assert f"Found pybind11: {packages}" in configured.stdout


def test_a_compiler_that_lacks_what_the_sources_need_is_named_in_one_line(tmp_path: Path) -> None:
    """Its build failed somewhere in the middle."""
    real, old = tool("g++"), tmp_path / "old"
    old.write_text(f'#!/bin/sh\ncase "$*" in *compiler_check*) exit 1 ;; esac\nexec {real} "$@"\n')
    old.chmod(0o755)
    configured = configure(tmp_path / "build", "CPP", CXX=str(old))
    assert configured.returncode == 1
    assert "clang 14 or newer" in " ".join(configured.stderr.split())


def test_the_flags_that_it_records_are_for_every_compiler(tmp_path: Path) -> None:
    """What comes later may be compiled by g++ after a build by clang, whose -fopenmp=libomp g++ refuses."""
    compilers = gcc_or_skip(), clang() or pytest.skip("no clang (to change that: apt-get install clang libomp-dev)")
    recorded = []
    for number, compiler in enumerate(compilers):
        configured = configure(tmp_path / str(number), "OPENMP", CXX=compiler)
        assert configured.returncode == 0, configured.stderr
        (record,) = (tmp_path / str(number)).glob("build.*.json")
        recorded.append(json.loads(record.read_text())["flags"])
    assert recorded[0] == recorded[1]


def test_presets_name_the_configuration_that_they_build() -> None:
    """Else a generator with several of them builds its first, which is Debug."""
    presets = json.loads((CLONE / "CMakePresets.json").read_text())
    types = {"release": "Release", "debug": "Debug", "asan": "RelWithDebInfo", "tsan": "RelWithDebInfo"}
    assert {each["name"]: each.get("configuration") for each in presets["buildPresets"]} == types


def sources_of(name: str, folder: Path, changed: Sequence[str] = ()) -> KernelText:
    """A copy of a tuned matmul and all that it includes, in which some files have one more line."""
    text = registry.kernel_texts("matmul", name)["tuned"]
    kernels = CLONE / "kernels"
    for file in text.files:
        copy = folder / file.resolve().relative_to(kernels)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(file.read_text() + "// changed\n" * (file.name in changed))
    return KernelText(**{**vars(text), "path": folder / text.path.resolve().relative_to(kernels)})


@pytest.mark.parametrize("changed", ["cpp.cpp", "blocked.hpp", "formats.hpp", "counting.hpp"])
def test_after_a_change_in_what_a_source_includes_it_is_compiled_anew(tmp_path: Path, changed: str) -> None:
    """Else an edited kernel, which lies in a header, is timed as it was before, and nobody says so."""
    device = registry.backend("cpp").open("cpu", 1)
    assert isinstance(device, _cpu_kernels.Device)
    assert device._ahead(sources_of("cpp", tmp_path), "float32") is not None
    assert device._ahead(sources_of("cpp", tmp_path, [changed]), "float32") is None
