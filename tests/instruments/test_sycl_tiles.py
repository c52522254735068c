"""matmul of sycl for AMX, on a CPU whose instructions of tiles a signal handler executes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from conftest import nightly
from faults.table import Change, planted_by, the_first_now
from processor import ON_X86_64, Program, check_conformance, complaints, cpu_with_tiles, running
from products import OfProducts, product
from sanitizers import HERE

from py_backends.functions.targets import targets_of
from py_backends.install import pip_install

KERNELS = HERE.parents[1] / "kernels"
TUNED = Path("matmul", "tuned")
pytestmark = [pytest.mark.slow, pytest.mark.sycl, ON_X86_64, pytest.mark.stamped(KERNELS / TUNED)]
STARTED_WITH = {"CL_CONFIG_CPU_TARGET_ARCH": "sapphirerapids"}


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Of a program whose SYCL is to compile for AMX."""
    targets = {target.name for target in targets_of("sycl") if target.available}
    if "intel-cpu" not in targets:
        what = "sycl: Intel's CPU runtime is not here, which alone compiles for tiles"
        pytest.skip(f"{what} (to change that: {pip_install('cpu')})")
    if "avx512bw" not in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        pytest.skip("this CPU lacks AVX-512 (to change that: a CPU that has it), which drivers use beside tiles")
    return cpu_with_tiles(tmp_path_factory.mktemp("processor")) | STARTED_WITH


def started(variables: Mapping[str, str], folder: Path, sources: Path = KERNELS / TUNED) -> Program:
    return Program(variables, folder, "run_sycl.py", sources)


@pytest.fixture(scope="module")
def program(variables: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with running(started(variables, tmp_path_factory.mktemp("tiles"))) as program:
        yield program


class TestProducts(OfProducts):
    """What it computes."""


@pytest.mark.parametrize(("dtype", "depth"), [("bfloat16", 32), nightly("int8", 64)])
def test_tiles_of_c_stay_in_registers(variables: dict[str, str], tmp_path: Path, dtype: str, depth: int) -> None:
    """A deeper product has more loads and products, four of each for every step, and no more stores."""
    counts = []
    for steps in (4, 8):
        with running(started(variables, tmp_path)) as program:
            program.results(product(64, 96, steps * depth, dtype))
            counts.append(program.end())
        (tmp_path / "counted").unlink()
    fewer, more = counts
    assert more["stored"] == fewer["stored"]
    for what in ("loaded", "multiplied"):
        assert more[what] - fewer[what] == 2 * 3 * 4 * 4, what


@pytest.mark.parametrize("fault", the_first_now(planted_by("sycl_tiles")))
def test_a_planted_fault_is_noticed(variables: dict[str, str], tmp_path: Path, fault: Change) -> None:
    """Else nothing above would be tested."""
    sources = fault.faulty_kernels(tmp_path) / TUNED
    cases = [product(70, 70, 94, "float16"), product(33, 150, 300, "float16", threads=2)]
    infinite = product(3, 4, 5, "float16")
    infinite.a[1, 2], infinite.b[2, 1] = math.inf, 1.0
    with running(started(variables, tmp_path, sources)) as program:
        assert complaints(program, *cases, infinite)


@pytest.mark.nightly
def test_the_conformance_suite_holds(variables: dict[str, str]) -> None:
    """In workers, which get the variable for the driver from the target."""
    check_conformance({"LD_PRELOAD": variables["LD_PRELOAD"]}, "sycl")
