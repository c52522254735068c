"""Number formats: what a line of the table is used for, and results in another format than the inputs'."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import plugin_packages
import pytest
from commands import CLONE, run_python

from py_backends import number_formats, registry
from py_backends.contract import Array, Problem, Reference, Target
from py_backends.errors import BackendUnavailable, WrongRequest
from py_backends.harness.case import Case
from py_backends.harness.request import Request
from py_backends.kernel_text import KernelText
from py_backends.number_formats import FORMATS, NumberFormat, number_format
from py_backends.workers.probe import BackendTarget
from py_backends.workers.session import Session

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


class Widened(Problem):
    """c = a + b, whose result has twice the bits."""

    name, signature, rule, rate = "widened", "(n),(n)->(n)", "bitwise", "gbytes_per_second"
    in_place, default_sizes, results = False, (7,), {"float32": "float64"}

    def reference(self, inputs: Sequence[Array]) -> Reference:
        a, b = inputs
        return Reference(a.astype(np.float64) + b)

    def flops(self, sizes: Sequence[int]) -> int:
        return sizes[0]


WIDENED = """
    import numpy as np
    from py_backends.contract import Problem, Reference

    class Widened(Problem):
        name, signature, rule, rate = "widened", "(n),(n)->(n)", "bitwise", "gbytes_per_second"
        in_place, default_sizes, results = False, (7,), {"float32": "float64"}

        def reference(self, inputs):
            return Reference(inputs[0].astype(np.float64) + inputs[1])

        def flops(self, sizes):
            return sizes[0]

    PROBLEM = Widened()
"""
TEXT = "import numpy as np\n\n\ndef widened(a, b, c, n):\n    np.add(a, b, out=c, dtype=np.float64)\n"
LOOP = "def widened(a, b, c, n):\n    for i in range(n):\n        c[i] = a[i] + b[i]\n"


@pytest.fixture
def case() -> Case:
    return Case(Widened(), (1000,), FLOAT32, seed=1)


def test_bytes_are_those_of_inputs_and_result() -> None:
    assert Widened().bytes((10,), FLOAT32) == 10 * (4 + 4 + 8)
    assert Widened().bytes((10,), FLOAT64) == 10 * (8 + 8 + 8)
    assert Widened().result_dtype(FLOAT64) == FLOAT64


def test_a_case_has_an_output_of_the_results_format(case: Case) -> None:
    assert [array.dtype for array in (*case.inputs, case.output)] == [FLOAT32, FLOAT32, FLOAT64]
    assert np.isnan(case.output).all()
    case.output[...] = case.inputs[0].astype(np.float64) + case.inputs[1]
    assert case.check_output().check.passed
    case.output[...] = case.inputs[0] + case.inputs[1]
    assert not case.check_output().check.passed, "a sum that was rounded on its way"


def test_zones_around_a_result_are_watched_in_its_format(case: Case) -> None:
    case.output[...] = case.inputs[0].astype(np.float64) + case.inputs[1]
    end = case.spans[-1].first + case.spans[-1].size
    case._memory[-1].bytes[end] ^= 1
    assert "the end" in (case.check_output().reason or "")


def test_a_format_of_few_bits_is_drawn_in_more_and_rounded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    half = NumberFormat("float16", c="half", drawn="float32", kept=-3.0e4)
    monkeypatch.setitem(number_formats.FORMATS, "float16", half)
    drawn = Case(Widened(), (100,), FLOAT32, seed=5)
    rounded = Case(Widened(), (100,), np.dtype(np.float16), seed=5)
    assert all((a.astype(np.float16) == b).all() for a, b in zip(drawn.inputs, rounded.inputs, strict=True))


def specs(*dtypes: str) -> set[tuple[str, str, str]]:
    """Kernel, backend and dtype of the rows of two backends, of which one has a target that takes few dtypes."""
    few = BackendTarget("numpy", Target("cpu", dtypes={"matmul": ("float32", "int8")}))
    request = Request(["matmul", "vecadd"], ["numpy", "python"], None, None, dtypes, {})
    return {
        (each.kernel, each.backend, each.dtype) for each in request.specs([few, BackendTarget("python", Target("cpu"))])
    }


def test_there_is_no_row_in_a_format_that_a_kernel_or_a_target_does_not_have() -> None:
    assert specs("float16", "int8") == {
        ("matmul", "numpy", "int8"),
        ("matmul", "python", "int8"),
        ("matmul", "python", "float16"),
        ("vecadd", "python", "float16"),
    }


@pytest.mark.parametrize(
    ("line", "dtypes"),
    [
        ("", registry.problem("matmul").dtypes),
        ("// ---\n// Formats: float64, float32", ("float32", "float64")),
        ("# ---\n# Formats: int8, int4", ("int8",)),
    ],
)
def test_a_text_says_which_of_its_kernels_formats_it_takes(line: str, dtypes: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "numpy.py"
    path.write_text(f"{line[:2].strip()} matmul: c = a b.\n{line}\n")
    text = KernelText(registry.problem("matmul"), "lecture", "numpy", path)
    assert text.dtypes == registry.dtypes(text) == dtypes
    assert registry.dtypes(text, Target("cpu", dtypes={"vecadd": dtypes})) == ()


def test_a_worker_tells_what_its_targets_take_and_prepares_nothing_else() -> None:
    session = Session()
    (target,) = session.targets([], "numpy", [])["targets"]
    assert set(target["dtypes"]) == set(registry.promised_kernels())
    assert "int8" in target["dtypes"]["matmul"]
    assert tuple(target["dtypes"]["vecadd"]) == registry.problem("vecadd").dtypes
    assert registry.texts_in("int8", "matmul", "numpy", Target(**target))
    assert not registry.texts_in("int8", "vecadd", "numpy", Target(**target))
    session.open([], "numpy", "cpu", 1)
    with pytest.raises(BackendUnavailable, match=r"vecadd of numpy takes float32, .* and \w+, not int8"):
        session.prepare([], "vecadd", "lecture", "int8")


def test_what_is_kept_is_a_number_of_its_format() -> None:
    """Else it could not be told from the poison, or from what an overflow leaves."""
    for each in FORMATS.values():
        kept = np.dtype(each.name).type(each.kept)
        assert np.isfinite(kept)
        assert kept != np.dtype(each.name).type(each.poison)


def test_an_unknown_format_is_told() -> None:
    with pytest.raises(WrongRequest, match="no number format complex64: there are float32, float64"):
        number_format(np.dtype(np.complex64))


@pytest.mark.slow
@pytest.mark.numpy
@pytest.mark.python
def test_a_kernel_with_another_format_for_its_result_is_compared_and_called(tmp_path: Path) -> None:
    package = {f"widening/{name}": "" for name in ("__init__.py",)} | {
        "widening/problem.py": WIDENED,
        "widening/lecture/numpy.py": TEXT,
        "widening/lecture/python.py": LOOP,
    }
    plugin_packages.install(tmp_path, plugin_packages.KERNELS, {"widened": "widening"}, package, "widening")
    results = tmp_path / "results.json"
    options = "--kernel", "widened", "--backend", "numpy,python", "--shape", "widened=1000", "--budget", "2"
    run = run_python("-m", "py_backends", "compare", *options, "--json", results, path=[CLONE, tmp_path])
    assert run.returncode == 0, run.stdout + run.stderr
    assert [row["status"] for row in json.loads(results.read_text())["rows"]] == ["ok", "ok"]
    code = """
import numpy as np, py_backends as pb
a, b = np.float32([1, 1e8]), np.float32([2**-30, 1])
out = np.empty(2)
for backend in "numpy", "python":
    c = pb.widened(a, b, backend=backend)
    assert c.dtype == np.float64 and (c == a.astype(np.float64) + b).all(), (backend, c)
    assert pb.widened(a, b, backend=backend, out=out) is out and (out == c).all()
    try:
        pb.widened(a, b, backend=backend, out=np.empty(2, np.float32))
    except TypeError as error:
        print(error)
"""
    run = run_python("-c", code, path=[CLONE, tmp_path])
    assert re.findall(r"float\d+", run.stdout) == ["float64", "float32"] * 2, run.stderr


def test_a_format_that_compilers_lack_is_promised_only_where_numpy_computes() -> None:
    """Else a line of the table, for NumPy's sake, is a failing row in every compiled backend."""
    code = """if True:
        from py_backends import number_formats
        number_formats.FORMATS["float8_e5m2"] = number_formats.NumberFormat("float8_e5m2", c="", drawn="float32")
        number_formats.DTYPES += ("float8_e5m2",)
        from py_backends import registry
        print(*(name for name in registry.backend_names() if "float8_e5m2" in registry.backend(name).dtypes))
    """
    asked = run_python("-c", code)
    assert (asked.stderr, asked.stdout.split()) == ("", ["mpi", "numpy", "processes", "python", "threads"])
