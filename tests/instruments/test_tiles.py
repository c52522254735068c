"""matmul for AMX on a model of its instructions, which most CPUs lack, and where those stand in what is compiled."""

from __future__ import annotations

import json
import math
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from compilers import gcc_or_skip
from conftest import after_a_change
from faults.table import Change, planted_by, the_first_now
from on_a_model import FAULTY, OnModel
from products import FORMATS, Case, OfProducts, product, wrong
from sanitizers import ADDRESS, HERE

from py_backends.contract import Array

pytestmark = [
    pytest.mark.avx,
    pytest.mark.skipif(
        platform.machine() != "x86_64", reason="this is no x86-64 CPU (to change that: one; AMX is for x86-64)"
    ),
]
ROOT = HERE.parents[1]
TEXT = ROOT / "kernels" / "matmul" / "tuned" / "avx.cpp"


@dataclass(frozen=True)
class Ended:
    """What came of a program: its results, and what it said where it did not end well."""

    results: list[Array]
    failure: str | None


class Program(OnModel):
    """The text, compiled for the model."""

    def __init__(self, folder: Path, text: Path = TEXT, flags: Sequence[str] = ADDRESS.flags) -> None:
        super().__init__(folder, text, "run.cpp", flags)

    def run(self, *cases: Case, **variables: str) -> Ended:
        printed, failure = self.answer(b"".join(case.request for case in cases), **variables)
        if failure:
            return Ended([], failure)
        results, begin = [], 0
        for case in cases:
            shape, dtype = (case.a.shape[0], case.b.shape[1]), np.int32 if case.a.dtype == np.int8 else np.float32
            results.append(np.frombuffer(printed, dtype, math.prod(shape), begin).reshape(shape))
            begin += results[-1].nbytes
        assert begin == len(printed)
        return Ended(results, None)

    def results(self, *cases: Case) -> list[Array]:
        ended = self.run(*cases)
        assert ended.failure is None, ended.failure
        return ended.results


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program(tmp_path_factory.mktemp("tiles"))


@after_a_change("kernels/matmul", "cpp_ext", "tests/instruments")
class TestProducts(OfProducts):
    """What it computes."""


@pytest.mark.slow
def test_infinity_is_found_by_a_thread_that_computes_several_parts(program: Program) -> None:
    """Where the system gives fewer threads than were asked for. Infinity is in the first part alone."""
    case = product(512, 260, 132, "float16", threads=2)
    case.a[3, 5] = np.inf
    ended = program.run(case, OMP_THREAD_LIMIT="1")
    assert ended.failure is None, ended.failure
    assert wrong([case], ended.results) == {}


@pytest.mark.slow
@pytest.mark.parametrize("fault", the_first_now(planted_by("tiles")))
def test_a_planted_fault_is_noticed(tmp_path: Path, fault: Change) -> None:
    """Else nothing above would be tested."""
    fault.faulty_kernels(tmp_path)
    program = Program(tmp_path, tmp_path / TEXT.relative_to(ROOT), FAULTY)
    cases = [product(70, n, 1100, dtype, offset=1) for n in (90, 96) for dtype in FORMATS]
    infinite = product(3, 4, 5, "float16")
    infinite.a[1, 2], infinite.b[2, 1] = math.inf, 1.0
    ended = program.run(*cases, infinite)
    assert ended.failure or wrong([*cases, infinite], ended.results)


class Compiled(NamedTuple):
    """The module avx: its instances by name, and the instructions of one, compiled with its flags."""

    instances: list[str]
    instructions: Callable[[str], str]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    folder = tmp_path_factory.mktemp("instances")
    cmake, objdump = shutil.which("cmake"), shutil.which("objdump")
    if cmake is None:
        pytest.skip("no cmake (to change that: pip install cmake)")
    if objdump is None:
        pytest.skip("no objdump (to change that: apt-get install binutils)")
    others = [f"-DPY_BACKENDS_{name}=OFF" for name in ("CPP", "OPENMP", "CEILINGS", "SYCL")]
    options = ["-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", f"-DPython_EXECUTABLE={sys.executable}", *others]
    place = [f"-DPY_BACKENDS_PLACE={folder / 'modules'}", "-DCMAKE_BUILD_TYPE=Release"]
    configure = [cmake, "-S", ROOT, "-B", folder, *options, *place]
    ran = subprocess.run(configure, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    commands = json.loads((folder / "compile_commands.json").read_text())
    by_instance = {Path(each["file"]).stem: each for each in commands}
    if "PY_BACKENDS_COMPILER_HAS_amx:INTERNAL=1" not in (folder / "CMakeCache.txt").read_text():
        pytest.skip("the C++ compiler has no AMX (to change that: g++ 11 or newer)")

    @cache
    def instructions(instance: str) -> str:
        how = by_instance[instance]
        made = folder / f"{instance}.o"
        # -O1 takes a third of the time, and intrinsics are the same instructions.
        command = re.sub(r" -o \S+", f" -O1 -o {made}", how["command"])
        subprocess.run(command, shell=True, cwd=how["directory"], check=True)  # noqa: S602  # CMake's own words
        return subprocess.run([objdump, "-d", made], capture_output=True, text=True, check=True).stdout

    return Compiled(sorted(by_instance), instructions)


@pytest.mark.slow
def test_tiles_are_multiplied_by_the_instance_for_amx_alone(compiled: Compiled) -> None:
    instructions = compiled.instructions("avx_matmul_tuned_amx")
    assert {"tdpbf16ps", "tdpbssd", "ldtilecfg", "tilerelease"} <= set(instructions.split())
    assert not {"tdpbf16ps", "tdpbssd", "tileloadd"} & set(compiled.instructions("avx_matmul_tuned_avx512").split())


@pytest.mark.slow
def test_pairs_of_bfloat16_are_multiplied_by_the_instance_for_avx512_alone(compiled: Compiled) -> None:
    of_each = {name: compiled.instructions(f"avx_matmul_tuned_{name}").split() for name in ("amx", "avx512", "avx2")}
    assert {name: "vdpbf16ps" in of_it for name, of_it in of_each.items()} == {
        "amx": False,
        "avx512": True,
        "avx2": False,
    }


@pytest.mark.slow
def test_texts_that_do_not_name_amx_are_not_compiled_for_it(compiled: Compiled) -> None:
    every = compiled.instances
    assert [name for name in every if name.endswith("_amx")] == ["avx_attention_tuned_amx", "avx_matmul_tuned_amx"]
    assert "tdpbf16ps" in compiled.instructions("avx_attention_tuned_amx").split()
    assert {"avx_matmul_lecture_avx512", "avx_vecadd_tuned_avx512"} <= set(every)


@pytest.mark.slow
def test_a_system_that_refuses_tiles_is_a_reason(tmp_path: Path) -> None:
    """As a container may, whose filter of system calls knows no such request."""
    if platform.system() != "Linux":
        pytest.skip("no Linux, whose filters these are")
    compiler = gcc_or_skip()
    source = HERE / "on_tiles" / "permission.cpp"
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *flags, str(source), "-o", tmp_path / "permission"], check=True)
    ran = subprocess.run([tmp_path / "permission"], capture_output=True, text=True, check=False)
    if ran.returncode == 77:
        pytest.skip("this system takes no filter of system calls (seccomp), as some containers do not")
    refused = "the system does not let this process use AMX tiles: Operation not permitted"
    lacking = "this CPU lacks AMX-TILE, AMX-BF16 and AMX-INT8"
    first, why = ran.stdout.splitlines()
    assert (ran.returncode, first) == (0, refused)
    assert why in (refused, lacking)
