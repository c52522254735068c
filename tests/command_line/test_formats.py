"""The command `formats`: speeds over float32 and errors, on made-up reports and once through the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run_command
from made_rows import with_work
from rich.console import Console

from py_backends import registry
from py_backends.commands.formats import picture
from py_backends.commands.formats.analysis import choices
from py_backends.commands.formats.plan import plan
from py_backends.commands.formats.table import columns, print_report
from py_backends.conformance.formats import limits
from py_backends.contract import Target
from py_backends.display import style
from py_backends.harness.case import Case
from py_backends.results.report import Ceiling, Check, Duration, Rate, Report, Row, Seconds
from py_backends.results.statistics import median
from py_backends.workers.probe import BackendTarget

ROUNDS = 24
SHAPE = {"m": 512, "n": 512, "k": 512}
DTYPES = registry.problem("matmul").dtypes
ERROR = 2e-3
"""Of every made-up row."""


def row_of(backend: str, dtype: str, gflops: float, **others: Any) -> Row:
    """An `ok` row of matmul, whose samples have a noise of their own."""
    seconds = 2 * 512**3 / gflops / 1e9
    noise = np.random.default_rng([len(backend), len(dtype)]).normal(0, 0.002, ROUNDS)
    made = Row("matmul", backend, "cpu", others.pop("variant", "tuned"), dtype, SHAPE, "ok", threads=2)
    made = replace(
        made,
        check=Check(True, "componentwise", 0.1, ERROR),
        seconds=Seconds(kernel=Duration(seconds, seconds, seconds, seconds, ROUNDS)),
        rate=Rate(gflops, 1.0),
        percent_of_ceiling=others.pop("percent", 50.0),
        kernel_seconds=(seconds * np.exp(noise)).tolist(),
    )
    return with_work(made)


def report_of(*rows: Row) -> Report:
    ceilings = [
        Ceiling("cpu", kind, dtype, "avx512", 2, size, unit, rate, rate, rate)
        for dtype, peak in (("float32", 400.0), ("bfloat16", 800.0))
        for kind, size, unit, rate in (
            ("multiply_adds", None, "gflops", peak),
            ("stored_additions", 10**6, "gbytes_per_second", 50.0),
            ("stored_copies", 10**6, "gbytes_per_second", 50.0),
        )
    ]
    return Report("2026-01-01", "0.1.0", {"cpu": "a CPU"}, {"seed": 1}, list(rows), ceilings=ceilings)


REPORT = report_of(
    row_of("slow", "float32", 10),
    row_of("slow", "bfloat16", 5, variant="lecture"),
    row_of("fast", "bfloat16", 400),
    row_of("fast", "float64", 100),
    row_of("fast", "float32", 200),
)


def test_a_backend_is_compared_with_its_own_float32() -> None:
    """Not with another's, nor with the baseline's; a tuned text with the lecture's where a format has no other."""
    (found,) = choices(REPORT).values()
    over = {(each.row.backend, each.row.dtype): each.over_float32 for each in found}
    assert {key: None if each is None else round(each.speedup, 1) for key, each in over.items()} == {
        ("fast", "float64"): 0.5,
        ("fast", "float32"): None,
        ("fast", "bfloat16"): 2.0,
        ("slow", "float32"): None,
        ("slow", "bfloat16"): 0.5,
    }


def test_order() -> None:
    """The fastest backend first, and of its formats the one with the most bits."""
    (found,) = choices(REPORT).values()
    order = [(each.row.backend, each.row.dtype) for each in found]
    assert order[:3] == [("fast", "float64"), ("fast", "float32"), ("fast", "bfloat16")]
    assert order[3:] == [("slow", "float32"), ("slow", "bfloat16")]


def test_the_peak_is_that_of_the_format() -> None:
    """400 GFLOP/s are half of what this machine does in bfloat16; nothing is said of a format without a peak."""
    (found,) = choices(REPORT).values()
    of_peak = {each.row.dtype: each.percent_of_peak for each in found if each.row.backend == "fast"}
    assert of_peak == {"float64": None, "float32": 50.0, "bfloat16": 50.0}


def test_cells() -> None:
    """Bytes of 16-bit inputs and a float32 result, rate, times float32, per cent of the peak, error."""
    (found,) = choices(REPORT).values()
    (choice,) = (each for each in found if (each.row.backend, each.row.dtype) == ("fast", "bfloat16"))
    line = tuple(str(column.cells[0]) for column in columns([choice]))
    assert line[:4] == ("fast", "cpu", "tuned", "bfloat16")
    assert line[4] == "2.10 MB"  # 2 x 512 x 512 x 2 bytes and 512 x 512 x 4
    assert line[5] == "400"
    assert line[6].startswith("2.00x ±") or line[6].startswith("1.99x ±") or line[6].startswith("2.01x ±")
    assert line[7:] == ("50%", "2.0e-03")


def test_table_and_picture() -> None:
    """The table says what its columns mean; the words of the picture hold what it shows."""
    out = Console(width=120, no_color=True, force_terminal=False)
    with out.capture() as captured:
        print_report(REPORT, out)
    assert "were rounded" in captured.get()
    said = picture.describe(REPORT)
    assert "fast cpu: float64 100 GFLOP/s" in said
    assert "error 2.0e-03" in said
    figure = picture.draw(REPORT)
    assert {line.get_label() for line in figure.axes[0].get_lines()} == {"fast cpu", "slow cpu"}


def test_nothing_to_draw() -> None:
    """A single format shows no price."""
    with pytest.raises(style.NothingToDraw, match="two formats"):
        picture.draw(report_of(row_of("fast", "float32", 200)))


def test_plan_has_a_row_for_each_format_that_a_backend_has() -> None:
    """Every format of the kernel, on the first target of each device."""
    found = [BackendTarget("numpy", Target("cpu", device="a CPU")), BackendTarget("numpy", Target("x", device="a CPU"))]
    specs = plan(["matmul", "vecadd"], {}).specs(found)
    assert {(spec.kernel, spec.dtype) for spec in specs} == {
        (kernel, dtype) for kernel in ("matmul", "vecadd") for dtype in registry.problem(kernel).dtypes
    }
    assert {spec.target for spec in specs} == {"cpu"}


def test_a_run_has_rounds_for_intervals_and_no_time_for_what_is_never_timed() -> None:
    """Five rounds have no 95% interval, and an emulated kernel has no speed but takes seconds to compile."""
    planned = plan(["matmul"], {})
    assert planned.timed_only
    assert median([1.0] * planned.least_rounds).low is not None


@pytest.mark.parametrize("dtype", DTYPES)
def test_relative_error_is_that_of_the_rounding(dtype: str) -> None:
    """A right result in a format is as far from float64 as rounding the inputs takes it, and not 0."""
    case = Case(registry.problem("matmul"), (60, 50, 40), np.dtype(dtype), seed=1)
    case.output[...] = case.references[0].value
    error = case.check_output().check.relative_error
    assert error is not None
    rounding = 2.0 ** -limits(np.dtype(dtype)).digits  # of numbers as large as the largest integer, or of any float
    assert rounding / 10 < error < rounding * 10 or (dtype == "float64" and error < 1e-15)
    case.close()


def test_an_output_too_large_for_a_norm_has_no_relative_error() -> None:
    """A kernel that takes float64 for float32 leaves such numbers, and a warning of NumPy would say nothing of it."""
    case = Case(registry.problem("matmul"), (6, 5, 4), np.dtype("float64"), seed=1)
    case.output[...] = 1e300
    assert case.check_output().check.relative_error is None
    case.close()


@pytest.mark.nightly
@pytest.mark.numpy
def test_a_real_run(tmp_path: Path) -> None:
    """Once through the command line: each format has its row, its error and its time over float32."""
    file = tmp_path / "formats.json"
    ended = run_command(
        "formats",
        "--backend",
        "numpy",
        "--shape",
        "matmul=96",
        "--budget",
        "2",
        "--json",
        file,
        "--svg",
        tmp_path / "f.svg",
    )
    assert ended.returncode == 0, ended.stderr
    rows = json.loads(file.read_text())["rows"]
    assert [row["dtype"] for row in rows] == list(DTYPES)
    assert all(row["check"]["relative_error"] is not None for row in rows)
    assert (tmp_path / "f.svg").is_file()
