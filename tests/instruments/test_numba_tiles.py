"""matmul of numba_cpu for AMX, on a CPU whose instructions of tiles a signal handler executes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from operator import attrgetter
from pathlib import Path

import pytest
from faults.table import Change, planted_by
from processor import ON_X86_64, Program, check_conformance, complaints, cpu_with_tiles, running
from products import FORMATS, SHAPES, Case, OfProducts, drawn, product, wrong
from sanitizers import HERE

SOURCES = HERE.parents[1] / "kernels" / "matmul" / "tuned"
pytestmark = [pytest.mark.slow, pytest.mark.numba_cpu, ON_X86_64, pytest.mark.stamped(SOURCES)]
ASSEMBLY = "multiply.s"


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Of a program for which Numba is to compile for AMX."""
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    features.update({"amx-tile": True, "amx-bf16": True, "amx-int8": True})
    return cpu_with_tiles(tmp_path_factory.mktemp("processor")) | {
        "NUMBA_CPU_NAME": binding.get_host_cpu_name(),
        "NUMBA_CPU_FEATURES": features.flatten(),
        "NUMBA_NUM_THREADS": "4",
    }


def started(variables: Mapping[str, str], folder: Path, sources: Path = SOURCES) -> Program:
    return Program(variables, folder, "run_numba.py", sources, folder / ASSEMBLY)


@pytest.fixture(scope="module")
def program(variables: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with running(started(variables, tmp_path_factory.mktemp("tiles"))) as program:
        yield program


def test_right_at_every_edge_in_one_format(program: Program) -> None:
    """Numba takes ten seconds to compile each."""
    cases = [product(*sizes, "bfloat16", threads=2) for sizes in SHAPES]
    assert wrong(cases, program.results(*cases)) == {}


@pytest.mark.nightly
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


@pytest.mark.nightly
@pytest.mark.parametrize(("dtype", "threads"), [("bfloat16", 2), ("float16", 1), ("int8", 3)])
def test_tiles_stay_in_registers(variables: dict[str, str], tmp_path: Path, dtype: str, threads: int) -> None:
    """No tile is loaded or stored beside those of the panels and the sums. Each thread configures its tiles once."""
    program = started(variables, tmp_path)
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
    assembly = (tmp_path / ASSEMBLY).read_text(encoding="utf-8")
    assert len(re.findall(r"\bldtilecfg\b", assembly)) == len(re.findall(r"\btilerelease\b", assembly)) == 1
    assert "sttilecfg" not in assembly


@pytest.mark.nightly
@pytest.mark.parametrize("fault", planted_by("numba_tiles"), ids=attrgetter("name"))
def test_a_planted_fault_is_noticed(variables: dict[str, str], tmp_path: Path, fault: Change) -> None:
    """Else nothing above would be tested."""
    sources = fault.faulty_kernels(tmp_path) / "matmul" / "tuned"
    (dtype,) = fault.dtypes  # another might not show it
    cases = [product(70, 70, 94, dtype), product(70, 150, 300, dtype, threads=2), meeting(dtype)]
    infinite = product(3, 4, 5, dtype)
    infinite.a[1, 2], infinite.b[2, 1] = math.inf, 1.0
    with running(started(variables, tmp_path, sources)) as program:
        assert complaints(program, *cases, infinite)


@pytest.mark.nightly
def test_the_conformance_suite_holds(variables: dict[str, str]) -> None:
    check_conformance(variables, "numba_cpu", "--quick")
