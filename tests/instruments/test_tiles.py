"""matmul for AMX on a model of its instructions, which most CPUs lack, and where those stand in what is compiled."""

from __future__ import annotations

import json
import math
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from compilers import gcc_or_skip
from conftest import NIGHTLY, nightly
from sanitizers import ADDRESS, HERE

from py_backends import registry
from py_backends.contract import Array
from py_backends.harness.check import judge

pytestmark = [
    pytest.mark.avx,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="AMX is for x86-64"),
]
ROOT = HERE.parents[1]
TEXT = ROOT / "kernels" / "matmul" / "tuned" / "avx.cpp"
HEADERS = TEXT.parent / "amx.hpp", TEXT.parent / "amx_packing.hpp"
FORMATS = "bfloat16", "float16", "int8"


@dataclass(frozen=True)
class Case:
    """A product, the threads that compute it, and how many elements lie before the first of each array."""

    a: Array
    b: Array
    threads: int = 1
    offset: int = 0

    @property
    def request(self) -> bytes:
        (m, k), n = self.a.shape, self.b.shape[1]
        line = f"{self.a.dtype.name} {m} {n} {k} {self.threads} {self.offset}\n"
        return line.encode() + self.a.tobytes() + self.b.tobytes()


@dataclass(frozen=True)
class Ended:
    """What came of a program: its results, and what it said where it did not end well."""

    results: list[Array]
    failure: str | None


class Program:
    """The text, compiled for the model."""

    def __init__(self, folder: Path, text: Path = TEXT, flags: Sequence[str] = ADDRESS.flags) -> None:
        self._path = folder / "program"
        compiler = gcc_or_skip()
        driver = HERE / "on_tiles"
        always = ["-std=c++17", "-O1", "-g1", "-ffp-contract=off", "-fwrapv", "-fopenmp", "-Wall", "-Wextra", "-Werror"]
        source = [f'-DTEXT="{text}"', f"-I{driver}", str(driver / "run.cpp"), "-o", str(self._path)]
        done = subprocess.run([compiler, *always, *flags, *source], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-4000:]

    def run(self, *cases: Case) -> Ended:
        environment = {"PATH": os.environ["PATH"], **ADDRESS.environment()}
        asked = b"".join(case.request for case in cases)
        ran = subprocess.run([self._path], input=asked, capture_output=True, env=environment, timeout=300, check=False)
        if ran.returncode:
            return Ended([], ran.stderr.decode(errors="replace")[-4000:] or f"exit code {ran.returncode}")
        results, begin = [], 0
        for case in cases:
            shape, dtype = (case.a.shape[0], case.b.shape[1]), np.int32 if case.a.dtype == np.int8 else np.float32
            results.append(np.frombuffer(ran.stdout, dtype, math.prod(shape), begin).reshape(shape))
            begin += results[-1].nbytes
        assert begin == len(ran.stdout)
        return Ended(results, None)

    def results(self, *cases: Case) -> list[Array]:
        ended = self.run(*cases)
        assert ended.failure is None, ended.failure
        return ended.results


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program(tmp_path_factory.mktemp("tiles"))


def drawn(shape: tuple[int, int], dtype: str, seed: int = 3) -> Array:
    generator = np.random.default_rng(seed)
    if dtype == "int8":
        return generator.integers(-128, 128, shape, np.int8)
    return generator.standard_normal(shape).astype(dtype)


def product(m: int, n: int, k: int, dtype: str, threads: int = 1, offset: int = 0) -> Case:
    return Case(drawn((m, k), dtype, 3), drawn((k, n), dtype, 4), threads, offset)


def wrong(cases: Sequence[Case], results: Sequence[Array]) -> dict[str, str]:
    """By shape and dtype what is not within the kernel's bound."""
    problem = registry.problem("matmul")
    verdicts = {
        f"{case.a.shape} {case.b.shape} {case.a.dtype}": judge(
            result, problem.reference([case.a, case.b]), problem.rule
        ).reason
        for case, result in zip(cases, results, strict=True)
    }
    return {name: reason for name, reason in verdicts.items() if reason}


@pytest.mark.parametrize("dtype", FORMATS)
def test_right_at_every_depth(program: Program, dtype: str) -> None:
    """Through every part of a step of either format, and one step more."""
    cases = [product(5 + k % 31, 3 + k % 37, k, dtype) for k in range(98)]
    assert wrong(cases, program.results(*cases)) == {}


SHAPES = [
    *((0, 5, 3), (5, 0, 3), (0, 0, 0), (5, 3, 0), (1, 1, 1), (1, 1, 200), (1, 70, 9), (70, 1, 9), (15, 16, 17)),
    *((16, 16, 32), (17, 31, 33), (31, 33, 63), (32, 32, 64), (33, 65, 129), (64, 64, 65), (65, 95, 31)),
]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", FORMATS)
def test_right_at_every_edge(program: Program, dtype: str, threads: int) -> None:
    cases = [product(*sizes, dtype, threads, offset) for sizes in SHAPES for offset in (0, 1)]
    assert wrong(cases, program.results(*cases)) == {}


@NIGHTLY
@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", FORMATS)
def test_right_in_blocks_that_threads_share(program: Program, dtype: str, threads: int) -> None:
    """Passes of two depths, and more columns than a block of b has."""
    cases = [product(70, 70, 1100, dtype, threads), product(70, 260, 930, dtype, threads)]
    assert wrong(cases, program.results(*cases)) == {}


@NIGHTLY
def test_threads_change_no_bit(program: Program) -> None:
    cases = [product(97, 161, 1030, dtype, threads) for dtype in FORMATS for threads in (1, 2, 4)]
    results = program.results(*cases)
    for at in range(0, len(cases), 3):
        assert len({result.tobytes() for result in results[at : at + 3]}) == 1


@pytest.mark.parametrize("k", [1, 2, 3, 16, 31, 32])
def test_every_bit_of_bfloat16_is_that_of_one_instruction(program: Program, k: int) -> None:
    case = Case(spread((17, k), "bfloat16", 5), spread((k, 19), "bfloat16", 6))
    expected = instruction(exact(case.a), exact(case.b))
    np.testing.assert_array_equal(program.results(case)[0], rounded_array(expected))


@pytest.mark.parametrize("k", [1, 2, 31, 32])
def test_every_bit_of_float16_is_that_of_four_instructions(program: Program, k: int) -> None:
    """Every number is two: the digits that bfloat16 has room for, and the others."""
    case = Case(spread((17, k), "float16", 5), spread((k, 19), "float16", 6))
    (high_a, low_a), (high_b, low_b) = halves(case.a), halves(case.b)
    expected = instruction(high_a, high_b)
    for a, b in (high_a, low_b), (low_a, low_b), (low_a, high_b):
        expected = instruction(a, b, expected)
    np.testing.assert_array_equal(program.results(case)[0], rounded_array(expected))


def test_sums_of_int8_wrap_around(program: Program) -> None:
    """At 2^31: so deep that it takes 2^17 products of -128 with itself."""
    k = 2**17 + 3
    case = Case(np.full((2, k), -128, np.int8), np.full((k, 3), -128, np.int8))
    np.testing.assert_array_equal(program.results(case)[0], np.full((2, 3), 128 * 128 * k - 2**32, np.int32))


def test_subnormal_numbers_of_float16_count(program: Program) -> None:
    a = np.float16([[2.0**-24, 3 * 2.0**-20, 2.0**-15]] * 5)
    b = np.float16([[2.0**-24], [2.0**-24], [2.0**-14]] * 1)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(program.results(Case(a, b))[0], expected.astype(np.float32))


def test_subnormal_numbers_of_bfloat16_are_within_the_bound(program: Program) -> None:
    a, b = spread((33, 40), "bfloat16", 7), spread((40, 35), "bfloat16", 8)
    a[:, ::3], b[::5] = np.float32(1e-39), np.float32(-3e-40)
    case = Case(a, b)
    assert wrong([case], program.results(case)) == {}


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_what_is_not_finite_stays_in_its_row_and_column(program: Program, dtype: str, value: float) -> None:
    """Also where another factor has no second part, is subnormal, zero, or was added to fill up."""
    cases = []
    for k, at in ((1, 0), (33, 32), (70, 5)):
        for where in "ab":
            a, b = drawn((40, k), dtype), drawn((k, 70), dtype, 4)
            b[at, :4] = np.array([0, 1, 2.0**-130 if dtype == "bfloat16" else 2.0**-24, -0.0], dtype)
            a[:4, at] = np.array([0, 1, 2.0**-130 if dtype == "bfloat16" else 2.0**-24, -0.0], dtype)
            if where == "a":
                a[21, at] = value
            else:
                b[at, 66] = value
            cases.append(Case(a, b, threads=2))
    results = program.results(*cases)
    assert wrong(cases, results) == {}
    assert all(np.isfinite(result).sum() >= result.size - 70 for result in results)


def test_infinities_of_both_signs_make_nan(program: Program) -> None:
    a, b = np.ones((3, 40), np.float16), np.ones((40, 5), np.float16)
    a[1, 3], a[1, 39] = math.inf, -math.inf
    assert np.isnan(program.results(Case(a, b))[0][1]).all()


def test_what_overflows_is_infinite(program: Program) -> None:
    a, b = np.ones((3, 40), "bfloat16") * 2.0**100, np.ones((40, 5), "bfloat16") * 2.0**100
    case = Case(a.astype("bfloat16"), b.astype("bfloat16"))
    assert (program.results(case)[0] == math.inf).all()


FAULTS = {
    "tiles that nobody configures": ("  configure_tiles();\n", ""),
    "a tile's rows that are read as columns": ("part * side + r)", "part * side + (r ^ 1))"),
    "columns of b in the other tile": ("+ tile * words_of_row + j", "+ (1 - tile) * words_of_row + j"),
    "rows of b the other way round": ("<< (p * bits)", "<< ((in_word - 1 - p) * bits)"),
    "an end of b that is not filled up": ("T filled[deep * side] = {};", "T filled[deep * side];"),
    "a pass that forgets those before": ("depth.begin > 0}", "false}"),
    "a block that goes too slowly": ("parts(side, steps)", "side / steps"),
    "a last block that waits for ever": ("  }\n  waiting.go(side, largest);\n}", "  }\n}"),
    "infinity that stays with the tiles": ("largest >= infinity", "largest > ~0u - 1"),
    "parts that are multiplied thrice": ("      load_b(b);\n      multiply_tiles<T>();\n", ""),
}


@pytest.mark.parametrize("name", [next(iter(FAULTS)), *map(nightly, list(FAULTS)[1:])])
def test_a_planted_fault_is_noticed(tmp_path: Path, name: str) -> None:
    """Else nothing above would be tested."""
    shutil.copytree(ROOT / "kernels", tmp_path / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    right, planted = FAULTS[name]
    contents = {tmp_path / header.relative_to(ROOT): header.read_text(encoding="utf-8") for header in HEADERS}
    assert sum(content.count(right) for content in contents.values()) == 1, "the text has changed: plant the fault anew"
    for header, content in contents.items():
        header.write_text(content.replace(right, planted), encoding="utf-8")
    program = Program(tmp_path, tmp_path / TEXT.relative_to(ROOT), ["-w", "-ftrivial-auto-var-init=pattern"])
    cases = [product(70, 70, 1100, dtype) for dtype in FORMATS]
    infinite = product(3, 4, 5, "float16")
    infinite.a[1, 2], infinite.b[2, 1] = math.inf, 1.0
    ended = program.run(*cases, infinite)
    assert ended.failure or wrong([*cases, infinite], ended.results)


def spread(shape: tuple[int, int], dtype: str, seed: int) -> Array:
    """Numbers of very different size, so that the order of sums shows."""
    generator = np.random.default_rng(seed)
    exponents = generator.integers(-14, 12, shape)
    return (generator.standard_normal(shape) * 2.0**exponents).astype(dtype)


Numbers = list[list[Fraction]]
"""A matrix without any rounding."""


def exact(array: Array) -> Numbers:
    return [[Fraction(float(x)) for x in row] for row in array]


def halves(array: Array) -> tuple[Numbers, Numbers]:
    """What a number has in its first eight digits, and the rest."""
    whole = array.astype(np.float32)
    high = (whole.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return exact(high), exact(whole - high)


def instruction(a: Numbers, b: Numbers, c: Numbers | None = None) -> Numbers:
    """c + a b as TDPBF16PS computes it."""
    return [
        [rounded((c[i][j] if c else 0) + chains(row, [of_p[j] for of_p in b])) for j in range(len(b[0]))]
        for i, row in enumerate(a)
    ]


def chains(x: Sequence[Fraction], y: Sequence[Fraction]) -> Fraction:
    """Products with even and odd places are summed apart, each rounded once with what it is added to."""
    sums = [Fraction(0), Fraction(0)]
    for p, (left, right) in enumerate(zip(x, y, strict=True)):
        sums[p % 2] = rounded(sums[p % 2] + left * right)
    return rounded(sums[0] + sums[1])


def rounded(x: Fraction) -> Fraction:
    """The nearest float32, of two the even one; zero in place of a subnormal one."""
    if x == 0:
        return x
    exponent = x.numerator.bit_length() - x.denominator.bit_length()  # or one too many
    exponent -= abs(x) < Fraction(2) ** exponent
    digit = Fraction(2) ** (exponent - 23)
    nearest = round(x / digit) * digit
    return nearest if abs(nearest) >= Fraction(2) ** -126 else Fraction(0)


def rounded_array(x: Numbers) -> Array:
    return np.array([[float(each) for each in row] for row in x], np.float32)


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


def test_tiles_are_multiplied_by_the_instance_for_amx_alone(compiled: Compiled) -> None:
    instructions = compiled.instructions("avx_matmul_tuned_amx")
    assert {"tdpbf16ps", "tdpbssd", "ldtilecfg", "tilerelease"} <= set(instructions.split())
    assert not {"tdpbf16ps", "tdpbssd", "tileloadd"} & set(compiled.instructions("avx_matmul_tuned_avx512").split())


def test_pairs_of_bfloat16_are_multiplied_by_the_instance_for_avx512_alone(compiled: Compiled) -> None:
    of_each = {name: compiled.instructions(f"avx_matmul_tuned_{name}").split() for name in ("amx", "avx512", "avx2")}
    assert {name: "vdpbf16ps" in of_it for name, of_it in of_each.items()} == {
        "amx": False,
        "avx512": True,
        "avx2": False,
    }


def test_texts_that_do_not_name_amx_are_not_compiled_for_it(compiled: Compiled) -> None:
    every = compiled.instances
    assert [name for name in every if name.endswith("_amx")] == ["avx_matmul_tuned_amx"]
    assert {"avx_matmul_lecture_avx512", "avx_vecadd_tuned_avx512"} <= set(every)


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
