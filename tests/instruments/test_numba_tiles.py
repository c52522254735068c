"""matmul of numba_cpu for AMX, on a CPU whose instructions of tiles a signal handler executes."""

from __future__ import annotations

import math
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

import numpy as np
import pytest
from compilers import gcc_or_skip
from conftest import NIGHTLY, nightly
from products import FORMATS, Case, OfProducts, drawn, product, wrong
from sanitizers import HERE

from py_backends.contract import Array

pytestmark = [
    pytest.mark.numba_cpu,
    pytest.mark.skipif((platform.system(), platform.machine()) != ("Linux", "x86_64"), reason="AMX is for x86-64"),
]
DRIVER = HERE / "on_tiles"
SOURCES = HERE.parents[1] / "kernels" / "matmul" / "tuned"
LONGEST = 240
"""Seconds after which a program is taken for hung."""


@pytest.fixture(scope="module")
def processor(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables for a program that is to run on a CPU with AMX."""
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    if not features.get("fma"):
        pytest.skip("this CPU lacks FMA, by which the instructions of tiles are modelled")
    library = tmp_path_factory.mktemp("processor") / "processor.so"
    how = ["-std=c++17", "-O2", "-mfma", "-ffp-contract=off", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror"]
    source = [str(DRIVER / "processor.cpp"), "-shared", "-fPIC", "-ldl", "-o", str(library)]
    subprocess.run([gcc_or_skip(), *how, *source], check=True)
    features.update({"amx-tile": True, "amx-bf16": True, "amx-int8": True})
    return {
        "LD_PRELOAD": str(library),
        "NUMBA_CPU_NAME": binding.get_host_cpu_name(),
        "NUMBA_CPU_FEATURES": features.flatten(),
        "NUMBA_NUM_THREADS": "4",
    }


class Failed(Exception):
    """A program ended before it had a result."""


class Program:
    """The target, in a process that compiles each format once."""

    def __init__(self, processor: Mapping[str, str], folder: Path, sources: Path = SOURCES) -> None:
        self.assembly, self._counted, self._said = folder / "multiply.s", folder / "counted", folder / "said"
        variables = os.environ | processor | {"TILES_COUNTED": str(self._counted)}
        command = [sys.executable, str(DRIVER / "run_numba.py"), str(sources), str(self.assembly)]
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said
            )

    def results(self, *cases: Case) -> list[Array]:
        """What it computes. Raises Failed with what it said where it ends."""
        return [self._result(case) for case in cases]

    def _result(self, case: Case) -> Array:
        asked, answered = self._pipes
        shape, dtype = (case.a.shape[0], case.b.shape[1]), np.int32 if case.a.dtype == np.int8 else np.float32
        size = math.prod(shape) * np.dtype(dtype).itemsize
        try:
            asked.write(case.request)
            asked.flush()
            answer = answered.read(size)
        except BrokenPipeError:
            answer = b""
        if len(answer) < size or self._process.poll() is not None:
            raise Failed(self._said.read_text(encoding="utf-8", errors="replace")[-4000:])
        return np.frombuffer(answer, dtype).reshape(shape)

    @property
    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        assert self._process.stdin
        assert self._process.stdout
        return self._process.stdin, self._process.stdout

    def end(self) -> dict[str, int]:
        """End it. Returns how often each instruction of tiles was executed."""
        try:
            self._process.communicate(timeout=LONGEST)
        finally:
            self._process.kill()
            self._process.wait()
        if not self._counted.exists():
            return {}
        counts = (line.split() for line in self._counted.read_text(encoding="utf-8").splitlines())
        return {name: int(count) for name, count in counts}


@pytest.fixture(scope="module")
def program(processor: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    made = Program(processor, tmp_path_factory.mktemp("tiles"))
    yield made
    made.end()


class TestProducts(OfProducts):
    """What it computes."""

    @pytest.mark.parametrize("threads", [1, 3, 4])
    @pytest.mark.parametrize("dtype", FORMATS)
    def test_right_in_small_blocks_of_passes(self, program: Program, dtype: str, threads: int) -> None:
        """Several passes, blocks of columns and parts of threads, of which some get nothing."""
        shapes = [(33, 70, 300), (40, 140, 600), (100, 33, 257), (1, 200, 129)]
        cases = [product(*shape, dtype, threads) for shape in shapes]
        results = program.results(*cases)
        assert wrong(cases, results) == {}

    @pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
    def test_infinity_meets_no_zero_that_fills_up(self, program: Program, dtype: str) -> None:
        case = meeting(dtype)
        assert wrong([case], program.results(case)) == {}


def meeting(dtype: str) -> Case:
    """Infinity at an end of b, from which memory goes to an end of a if that is not filled up."""
    case = Case(drawn((40, 35), dtype), drawn((35, 70), dtype, 4))
    case.b[32, 68] = math.inf
    return case


PRODUCTS = {"bfloat16": 1, "float16": 4, "int8": 1}
LOADS = {"bfloat16": 4, "float16": 10, "int8": 4}
"""Of tiles for a step of 2 x 2 tiles of c."""


@pytest.mark.parametrize(("dtype", "threads"), [("bfloat16", 2), nightly("float16", 1), nightly("int8", 3)])
def test_tiles_stay_in_registers(processor: dict[str, str], tmp_path: Path, dtype: str, threads: int) -> None:
    """No tile is loaded or stored beside those of the panels and the sums. Each thread configures its tiles once."""
    program = Program(processor, tmp_path)
    program.results(product(96, 64, 256, dtype, threads))
    counts = program.end()
    depth = 64 if dtype == "int8" else 32
    panels, passes = 3 * 2, {"bfloat16": 2, "float16": 4, "int8": 1}[dtype]
    steps = panels * 256 // depth
    assert counts == {
        "configured": threads,
        "zeroed": 4 * panels * passes,
        "loaded": LOADS[dtype] * steps,
        "stored": 4 * panels * passes,
        "multiplied": 4 * PRODUCTS[dtype] * steps,
    }
    assembly = program.assembly.read_text(encoding="utf-8")
    assert len(re.findall(r"\bldtilecfg\b", assembly)) == len(re.findall(r"\btilerelease\b", assembly)) == 1
    assert "sttilecfg" not in assembly


FAULTS = {
    "tiles that nobody configures": ("    configure_tiles()\n", ""),
    "tiles of b that are swapped": ("A[c // 2], B[c % 2]", "A[c // 2], B[1 - c % 2]"),
    "rows of b the other way round": ("[bits * shift]", "[bits * (32 // bits - 1 - shift)]"),
    "an end of a that is not filled up": ("end[:] = 0\n            if r < rows:", "if r < rows:"),
    "a pass that forgets those before": ("BYTES // a.itemsize, p0 > 0", "BYTES // a.itemsize, False"),
    "a block that goes too slowly": ("(SIDE + steps - 1) // steps", "SIDE // steps"),
    "a last block that waits for ever": ("infinite | write_rows(buffer, c, waiting, 0, SIDE, add)", "infinite"),
    "a low half that is left out": ("if parts(of_a.dtype) == 2:", "if parts(of_a.dtype) == 3:"),
    "parts that are multiplied thrice": (
        "            load_b(0)\n            multiply()\n        return",
        "        return",
    ),
    "infinity that stays with the tiles": ("if infinite.any():", "if infinite.all() and m == 0:"),
    "rows that no thread computes": ("part_of(m, part // across", "part_of(m, part % across"),
}
IN_FLOAT16 = {name for name in FAULTS if re.search("half|parts|infinity", name)}
"""Those that bfloat16 would not show."""
AT_ONCE = "tiles of b that are swapped"


@pytest.mark.parametrize("name", [AT_ONCE, *(nightly(name) for name in FAULTS if name != AT_ONCE)])
def test_a_planted_fault_is_noticed(processor: dict[str, str], tmp_path: Path, name: str) -> None:
    """Else nothing above would be tested."""
    right, planted = FAULTS[name]
    contents = {path.name: path.read_text(encoding="utf-8") for path in SOURCES.glob("numba_cpu_*.py")}
    assert sum(content.count(right) for content in contents.values()) == 1, "the source has changed: plant it anew"
    for file, content in contents.items():
        (tmp_path / file).write_text(content.replace(right, planted), encoding="utf-8")
    program = Program(processor, tmp_path, tmp_path)
    dtype = "float16" if name in IN_FLOAT16 else "bfloat16"
    cases = [product(70, 70, 94, dtype), product(70, 150, 300, dtype, threads=2), meeting(dtype)]
    infinite = product(3, 4, 5, dtype)
    infinite.a[1, 2], infinite.b[2, 1] = math.inf, 1.0
    try:
        noticed = wrong([*cases, infinite], program.results(*cases, infinite))
    except Failed as failed:
        noticed = {"it ended": str(failed)}
    finally:
        program.end()
    assert noticed


@NIGHTLY
def test_the_conformance_suite_holds(processor: dict[str, str]) -> None:
    options = ["--backend", "numba_cpu", "--target", "amx", "--quick"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "py_backends.conformance"]
    variables = os.environ | processor
    run = subprocess.run([*command, *options], env=variables, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-4000:]
    assert re.search(r"matmul +tuned +float16 +\d+ cases", run.stdout), run.stdout[-4000:]
