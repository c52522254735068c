"""matmul of sycl for AMX, on a CPU whose instructions of tiles a signal handler executes."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from conftest import nightly
from processor import ON_X86_64, Program, check_conformance, complaints, cpu_with_tiles, running
from products import OfProducts, product
from sanitizers import HERE

from py_backends.functions.targets import targets_of
from py_backends.install import pip_install

pytestmark = [pytest.mark.slow, pytest.mark.sycl, ON_X86_64]
KERNELS = HERE.parents[1] / "kernels"
TUNED = Path("matmul", "tuned")
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


FAULTS = {
    "tiles of b that are swapped": ("c[i][j], a[i], b[j], c[i][j]", "c[i][j], a[i], b[1 - j], c[i][j]"),
    "panels of b one too far": ("parts(m, side) * side;", "(parts(m, side) + 1) * side;"),
    "a part of a panel in another place": ("* words_of_step<T>;\n  const Size i", "* words_of_tile;\n  const Size i"),
    "tiles of c that overlap": ("at % 2 * words_of_row;", "at / 2 * words_of_row;"),
    "columns read beyond the end": ("n, least(side, n - j), depth", "n, side, depth"),
    "rows that are left out": ("i < least(m, i1 + side); ++i", "i + 1 < least(m, i1 + side); ++i"),
    "columns written beyond the end": ("j < least(n, j1 + side); j += items", "j < j1 + side; j += items"),
    "infinity that stays with the tiles": ("if (!sycl::isfinite(sum))", "if (sycl::isnan(sum) && k < 0)"),
    "parts that are multiplied twice": ("load<T>(group, of_a, a + low);", "load<T>(group, of_a, a);"),
    "a last step that is left out": ("step < steps; ++step", "step + 1 < steps; ++step"),
}
AT_ONCE = "tiles of b that are swapped"


@pytest.mark.parametrize("name", [AT_ONCE, *(nightly(name) for name in FAULTS if name != AT_ONCE)])
def test_a_planted_fault_is_noticed(variables: dict[str, str], tmp_path: Path, name: str) -> None:
    """Else nothing above would be tested."""
    copy, (right, planted) = tmp_path / "kernels", FAULTS[name]
    shutil.copytree(KERNELS, copy, ignore=shutil.ignore_patterns("__pycache__"))
    header = copy / TUNED / "sycl_amx.hpp"
    content = header.read_text(encoding="utf-8")
    assert content.count(right) == 1, "the source has changed: plant the fault anew"
    header.write_text(content.replace(right, planted), encoding="utf-8")
    cases = [product(70, 70, 94, "float16"), product(33, 150, 300, "float16", threads=2)]
    infinite = product(3, 4, 5, "float16")
    infinite.a[1, 2], infinite.b[2, 1] = math.inf, 1.0
    with running(started(variables, tmp_path, copy / TUNED)) as program:
        assert complaints(program, *cases, infinite)


@pytest.mark.nightly
def test_the_conformance_suite_holds(variables: dict[str, str]) -> None:
    """In workers, which get the variable for the driver from the target."""
    check_conformance({"LD_PRELOAD": variables["LD_PRELOAD"]}, "sycl")
