"""Any functions against one another: right or wrong, and the results as of any comparison."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import raced_functions as functions
from commands import run_python
from conftest import after_a_change

import py_backends as pb
from py_backends import folders, registry
from py_backends.racing.race import race_file
from py_backends.results.report import Report

pytestmark = pytest.mark.stamped

X = np.random.default_rng(1).standard_normal(1000)
race = partial(pb.race, budget=2.0)
OF_RACES = after_a_change("py_backends/racing", "py_backends/folders.py")


def statuses(report: Report) -> dict[str, str]:
    return {row.backend: row.status for row in report.rows}


def test_five_lines_are_a_race(tmp_path: Path) -> None:
    """Of functions of the script itself, which has no `__main__` guard, and of a module beside it."""
    script = tmp_path / "script.py"
    (tmp_path / "beside.py").write_text("def scan(x):\n    return x.cumsum()\n")
    script.write_text(
        "import numpy as np, py_backends as pb, beside\n"
        "def mine(x):\n"
        "    return np.add.accumulate(x)\n"
        'functions = {"numpy": np.cumsum, "mine": mine, "beside": beside.scan}\n'
        "print(pb.race(functions, inputs=np.ones(1000), budget=2))\n"
    )
    run = run_python(script, cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert "numpy()" in run.stdout
    assert "vs numpy()" in run.stdout
    assert "3 rows ran, and all are right." in run.stdout


@OF_RACES
def test_a_function_against_itself(tmp_path: Path) -> None:
    """Nothing is faster or slower, but where the machine says so. Nothing is left of the race, and results are read."""
    before, backends = os.environ.get(folders.VARIABLE), registry.backend_names()
    report = race({"one": np.cumsum, "other": np.cumsum}, (X,))
    assert statuses(report) == {"one()": "ok", "other()": "ok"}
    verdicts = {row.versus.verdict for row in report.rows if row.versus}
    assert report.mostly_disturbed or not verdicts & {"faster", "slower"}
    assert {row.kernel for row in report.rows} == {"race"}
    assert not any(row.seconds is None or row.seconds.prepare is None for row in report.rows)
    (tmp_path / "r.json").write_text(report.to_json())
    assert pb.read(tmp_path / "r.json") == report
    assert "one()" in report._repr_html_()
    assert "No picture" not in report._repr_html_()
    assert (os.environ.get(folders.VARIABLE), registry.backend_names()) == (before, backends)
    assert not registry.is_kernel("race")
    assert not [name for name in sys.modules if folders.brings(name) and "race" in name]
    assert not [package for package in report.machine["packages"] if Path(package).is_absolute()]


@OF_RACES
def test_the_next_race_of_the_same_names_is_another_one() -> None:
    for function, wanted in ((functions.ones, "ok"), (functions.twos, "mismatch")):
        report = race({"right": functions.ones, "mine": function}, (X,), budget=0.5)
        assert statuses(report) == {"right()": "ok", "mine()": wanted}


ARRAYS: tuple[Any, ...] = (
    X.reshape(10, 100) * (1 + 2j),
    X > 0,
    np.arange(12).reshape(3, 4),
    np.arange(7, dtype=np.uint16),
    X.astype(ml_dtypes.bfloat16),
    np.array(2.5),
    np.zeros((0, 3), np.float32),
)


def test_arrays_of_every_kind_in_and_out() -> None:
    """Between them stands what is no array, which functions get as it is."""
    both = {"flip": functions.of_every_kind, "steps": functions.of_every_kind_again}
    assert set(statuses(race(both, (*ARRAYS, 3), tolerance=1e-12)).values()) == {"ok"}


@OF_RACES
def test_a_race_without_an_array_or_with_whole_numbers_alone() -> None:
    report = race({"arange": np.arange, "sum": lambda n: np.cumsum(np.ones(n, int)) - 1}, 1000, budget=1)
    assert set(statuses(report).values()) == {"ok"}
    report = race({"cumsum": np.cumsum, "accumulate": np.add.accumulate}, np.arange(10), budget=1)
    assert {(row.status, row.dtype, row.check and row.check.rule) for row in report.rows} == {
        ("ok", "int64", "bitwise")
    }


WRONG = {
    "off_at_the_end": ("mismatch", "1 of 1000 elements are wrong, the first at [999]"),
    "in_float32": ("mismatch", "the first at ["),
    "too_short": ("mismatch", "returns float64 of shape (999,), and numpy float64 of shape (1000,)"),
    "in_other_format": ("mismatch", 'and numpy float64 of shape (1000,): .astype("float64") at its end'),
    "two_outputs": ("mismatch", "returns (float64 of shape (1000,), float64 of shape (1000,)), and numpy float64"),
    "nothing": ("mismatch", "returns a NoneType, and numpy float64"),
    "raises": ("error", "RuntimeError: no such luck"),
    "changes_its_input": ("mismatch", "changes an input"),
    "ends_the_process": ("crashed", "exited with code 3"),
    "never_ends": ("timeout", "no answer"),
    "prints_for_ever": ("timeout", "it last wrote: still here"),
}


@OF_RACES
def test_each_wrong_function_is_one_line_of_its_row() -> None:
    named = {name: getattr(functions, name) for name in WRONG}
    report = race({"numpy": np.cumsum, **named}, X, patience=2)
    found = {row.backend.removesuffix("()"): row for row in report.rows}
    assert found.pop("numpy").status == "ok"
    for name, (status, words) in WRONG.items():
        assert found[name].status == status, name
        reason = found[name].reason
        assert reason is not None
        assert words in reason
        assert "\n" not in reason
    assert report.exit_code() == 1


@OF_RACES
def test_who_changes_an_input_that_is_no_array_is_wrong() -> None:
    """The next call would find it sorted already."""
    named = {"sorted": lambda given: np.array(sorted(given)), "in place": lambda given: np.array(given.sort() or given)}
    report = race(named, (X.tolist(),), budget=1)
    assert statuses(report) == {"sorted()": "ok", "in place()": "mismatch"}
    assert "changes an input that is no array" in (report.rows[1].reason or "")


@OF_RACES
def test_races_in_threads_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(folders.VARIABLE, raising=False)
    with ThreadPoolExecutor(2) as pool:
        reports = pool.map(lambda at: race({f"cumsum {at}": np.cumsum, "mine": np.cumsum}, X, budget=1), range(2))
        assert [list(statuses(each)) for each in reports] == [["cumsum 0()", "mine()"], ["cumsum 1()", "mine()"]]
    assert folders.VARIABLE not in os.environ
    assert folders.every() == []


@OF_RACES
def test_a_tolerance_takes_the_place_of_the_bound() -> None:
    for tolerance, wanted in ((1e-5, "ok"), (1e-12, "mismatch")):
        raced = race({"numpy": np.cumsum, "mine": functions.in_float32}, X, tolerance=tolerance, budget=0.5)
        assert statuses(raced)["mine()"] == wanted


@OF_RACES
def test_a_reference_judges_the_first_one_too() -> None:
    report = race([functions.in_float32, np.cumsum], X, reference=np.cumsum, budget=0.5)
    assert statuses(report) == {"in_float32()": "mismatch", "cumsum()": "ok"}


@OF_RACES
def test_a_function_in_fewer_digits_than_an_input_is_wrong() -> None:
    both = {"mine": functions.weighted, "narrow": functions.weighted_in_float32}
    assert statuses(race(both, (X, X.astype(np.float32)), budget=0.5)) == {"mine()": "ok", "narrow()": "mismatch"}


@OF_RACES
def test_the_first_function_may_round_to_fewer_digits() -> None:
    both = {"one": lambda x: x.astype(np.float32) * 3, "other": lambda x: (x * 3).astype(np.float32)}
    assert set(statuses(race(both, X, budget=0.5)).values()) == {"ok"}


CANNOT_JUDGE = {
    "raises": "cannot tell what is right: RuntimeError: no such luck",
    "ends_the_process": "exited with code 3",
    "never_ends": "no answer to 'answer' within 2 s",
    "changes_its_input": "changes an input",
    "nothing": "what nothing returns is a NoneType: it must be an array, or a tuple of arrays",
    "sums_in_float32": "what sums_in_float32 returns lies outside the bound that comes by itself: give a tolerance",
    "unbounded": r"the bounds cannot follow unbounded \(np.remainder has no bound here\): give a tolerance",
}


@pytest.mark.parametrize("name", CANNOT_JUDGE)
def test_what_cannot_judge_is_one_line(name: str) -> None:
    with pytest.raises(ValueError, match=CANNOT_JUDGE[name]) as raised:
        race([getattr(functions, name)], X, patience=2)
    assert "\n" not in str(raised.value)


REFUSED: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "a name that is taken": ([np.sort, np.sort], X, {}, "two functions are named sort"),
    "no name": ([lambda x: x], X, {}, "name it in a dict"),
    "a dot in its name": ({"v1.2": np.sort}, X, {}, "letters, digits"),
    "no function": ({"mine": 3}, X, {}, "mine is 3, which is no function"),
    "none at all": ({}, X, {}, "no function to race"),
    "not several": (np.sort, X, {}, "a mapping from names"),
    "objects": ([np.sort], np.array([None]), {}, "input 1 is an array of object"),
    "complex numbers": ([np.conj], X * 1j, {}, "no bounds for the complex numbers of conj(ugate)?: give a tolerance"),
    "a tolerance": ([np.sort], X, {"tolerance": -1}, "tolerance must be"),
    "a patience": ([np.sort], X, {"patience": 0}, "patience must be"),
    "a budget": ([np.sort], X, {"budget": 0}, "budget must be"),
    "one alone": ([np.sort], X, {}, "sort is alone, so nothing is compared"),
    "no array": ({"none": lambda _: ()}, X, {}, "none returns no array: an empty tuple"),
    "more than there is memory": ([np.sort], np.broadcast_to(X, (1 << 40, X.size)), {}, "GB are free"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_is_one_line(what: str) -> None:
    raced, inputs, options, words = REFUSED[what]
    with pytest.raises(ValueError, match=words) as raised:
        pb.race(raced, inputs, **options)
    assert "\n" not in str(raised.value)


@OF_RACES
@pytest.mark.numba_cpu
def test_a_function_that_numba_compiles() -> None:
    import numba

    def loop(x: Any) -> Any:
        y, total = np.empty_like(x), 0.0
        for i in range(x.size):
            total += x[i]
            y[i] = total
        return y

    report = race({"numpy": np.cumsum, "numba": numba.njit(loop)}, X)
    assert statuses(report) == {"numpy()": "ok", "numba()": "ok"}
    compiled = report.rows[-1].seconds
    assert compiled is not None
    assert compiled.first_launch is not None


@OF_RACES
@pytest.mark.numba_cpu
def test_a_sum_that_numba_compiles_gives_a_number_of_python() -> None:
    """It had a float32, of which Numba makes a float. One of NumPy in another format is a mismatch still."""
    import numba

    def loop(x: Any) -> Any:
        total = np.float32(0)
        for i in range(x.size):
            total += x[i]
        return total

    named = {"numpy": np.sum, "numba": numba.njit(loop), "wide": lambda x: x.astype(float).sum()}
    report = race(named, X.astype(np.float32) + 3, budget=1)
    assert statuses(report) == {"numpy()": "ok", "numba()": "ok", "wide()": "mismatch"}
    assert "np.float32(...) around it converts it" in (report.rows[2].reason or "")


@OF_RACES
@pytest.mark.jax
def test_a_function_that_jax_compiles() -> None:
    import jax

    x = X.astype(np.float32)
    report = race({"numpy": lambda x: 2 * x + 1, "jax": jax.jit(lambda x: 2 * x + 1)}, x)
    assert statuses(report) == {"numpy()": "ok", "jax()": "ok"}


@OF_RACES
def test_a_file_of_a_kernels_name_is_no_kernel(tmp_path: Path) -> None:
    file = tmp_path / "matmul.py"
    functions_in_lines = "def inputs(): return np.ones(3)\ndef mine(x): return x\ndef other(x): return x\n"
    file.write_text(f"import numpy as np\n{functions_in_lines}")
    assert {(row.kernel, row.status) for row in race_file(file, budget=1).rows} == {("race", "ok")}
