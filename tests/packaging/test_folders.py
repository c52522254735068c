"""Kernels in folders of anybody's: named by their paths, without a package. Each fault of one is one clear line."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from commands import run_python
from conftest import after_a_change
from written_files import made

import py_backends as pb
from py_backends import folders, registry
from py_backends.commands import _options
from py_backends.errors import BrokenKernel, WrongRequest
from py_backends.harness.request import Request
from py_backends.system import machine

pytestmark = pytest.mark.stamped

OF_FOLDERS = after_a_change("py_backends/folders.py", "py_backends/registry.py", "py_backends/conformance")

PROBLEM = """
import numpy as np
from py_backends.contract import Problem, Reference

class Axpy(Problem):
    name = "axpy"
    signature = "(1),(n),(n)->(n)"

    def reference(self, alpha, x, y):
        u = np.finfo(x.dtype).eps / 2
        alpha, x, y = (each.astype(np.float64) for each in (alpha, x, y))
        return Reference(alpha * x + y, 4 * u * (abs(alpha * x) + abs(y)))

PROBLEM = Axpy()
"""
IN_NUMPY = """
import numpy as np

def axpy(alpha, x, y, z, n):
    np.multiply(alpha, x, out=z)
    z += y
"""
IN_OPENCL = """// axpy
// ---
// Work items: n, in groups of 256
kernel void axpy(global const T* alpha, global const T* x, global const T* y, global T* z, long n) {
  const long i = get_global_id(0);
  if (i < n) z[i] = alpha[0] * x[i] + y[i];
}
"""


@pytest.fixture
def axpy(tmp_path: Path) -> Path:
    return made(tmp_path / "axpy", {"problem.py": PROBLEM, "lecture/numpy.py": IN_NUMPY})


@OF_FOLDERS
def test_a_folder_is_a_kernel_on_the_command_line(axpy: Path, tmp_path: Path) -> None:
    """Beside a kernel that is here. Rows of the results say whose it is, and a hash of what it holds."""
    results = tmp_path / "results.json"
    options = "--kernel", "vecadd,./axpy", "--shape", "axpy=1009", "--backend", "numpy", "--budget", "3"
    run = run_python("-m", "py_backends", "compare", *options, "--json", results, cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    report = json.loads(results.read_text())
    assert {(row["kernel"], row["status"]) for row in report["rows"]} == {("vecadd", "ok"), ("axpy", "ok")}
    assert report["machine"]["packages"][str(axpy)] == folders.kernel_at(axpy).digest
    assert report["settings"]["request"]["kernels"] == ["vecadd", str(axpy)], "so that another process can resume it"


@OF_FOLDERS
def test_its_path_may_hold_any_character(tmp_path: Path) -> None:
    """Workers find it too. For a newline or `=` they read another path."""
    folder = made(tmp_path / "a=b\nc 한" / "axpy", {"problem.py": PROBLEM, "lecture/numpy.py": IN_NUMPY})
    options = "--kernel", folder, "--shape", "axpy=1009", "--backend", "numpy", "--budget", "1"
    run = run_python("-m", "py_backends", "compare", *options, "--json", "results.json", cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert [row["status"] for row in json.loads((tmp_path / "results.json").read_text())["rows"]] == ["ok"]


@OF_FOLDERS
@pytest.mark.opencl
def test_its_sources_run_in_other_models(axpy: Path, tmp_path: Path) -> None:
    made(axpy, {"lecture/opencl.cl": IN_OPENCL})
    options = "--kernel", axpy, "--backend", "opencl", "--quick", "--kind", "shapes"
    run = run_python("-m", "pytest", "-q", "--pyargs", "py_backends.conformance", *options, cwd=tmp_path)
    assert run.returncode == 0, run.stdout
    assert " passed" in run.stdout


@OF_FOLDERS
def test_a_folder_of_sources_is_a_variant_of_a_kernel(tmp_path: Path) -> None:
    made(tmp_path / "mine", {"numpy.py": "import numpy as np\n\ndef vecadd(a, b, c, n):\n    np.add(b, a, out=c)\n"})
    options = "--kernel", "vecadd", "--sources", "mine", "--variant", "mine", "--backend", "numpy", "--budget", "2"
    run = run_python("-m", "py_backends", "compare", *options, cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert "mine" in run.stdout


@OF_FOLDERS
def test_diff_says_that_a_folder_of_sources_holds_something_else(tmp_path: Path) -> None:
    """It could not, if results had no hash of it: two texts of one variant would pass for the same."""
    mine = tmp_path / "mine"
    options = "--kernel", "vecadd", "--sources", "mine", "--variant", "mine", "--backend", "numpy", "--budget", "1"
    hashes = []
    for at, sum_of in enumerate(("a, b", "b, a")):
        made(mine, {"numpy.py": f"import numpy as np\n\ndef vecadd(a, b, c, n):\n    np.add({sum_of}, out=c)\n"})
        hashes.append(folders.sources_at(mine, "vecadd").digest)
        run_python("-m", "py_backends", "compare", *options, "--json", f"{at}.json", cwd=tmp_path)
        assert json.loads((tmp_path / f"{at}.json").read_text())["machine"]["packages"][str(mine)] == hashes[-1]
    shown = run_python("-m", "py_backends", "diff", "0.json", "1.json", cwd=tmp_path).stdout
    assert f"{mine} {hashes[0]} → {hashes[1]}" in " ".join(shown.split())


@pytest.mark.usefixtures("forgotten")
def test_results_have_the_hash_of_the_last_change(axpy: Path) -> None:
    """As in a notebook, where one process describes the machine again and again."""
    for text in (PROBLEM, f"{PROBLEM}\n"):
        made(axpy, {"problem.py": text})
        registry.kernel_named(axpy)
        assert machine.describe()["packages"][str(axpy)] == folders.kernel_at(axpy).digest


class TestHash:
    """Equal hashes say that it is the same kernel, and others that it is not."""

    SOURCE = '#include "../../near.hpp"\n'

    @pytest.fixture
    def mine(self, tmp_path: Path) -> Path:
        made(tmp_path, {"near.hpp": '#include "far/far.hpp"\n', "far/far.hpp": "", "beside.hpp": ""})
        return made(tmp_path / "at" / "mine", {"openmp.cpp": self.SOURCE, "module.py": ""})

    @pytest.mark.parametrize(
        "place",
        [
            "results.json",
            "deep/r.csv",
            "page.html",
            "README.md",
            "p.png",
            ".git/HEAD",
            "a/.b/c.py",
            "__pycache__/m.pyc",
        ],
    )
    def test_what_is_no_part_of_the_kernel_leaves_it(self, place: str, mine: Path) -> None:
        """A run that wrote its results into the folder changed the kernel, and diff said so."""
        before = folders.sources_at(mine, "vecadd").digest
        made(mine, {place: "x"})
        assert folders.sources_at(mine, "vecadd").digest == before

    @pytest.mark.parametrize(
        "place", ["module.py", "openmp.cpp", "deep/m.py", "a.hpp", "data.npz", "../../near.hpp", "../../far/far.hpp"]
    )
    def test_a_change_of_any_part_changes_it(self, place: str, mine: Path) -> None:
        """Of a header that lies elsewhere too."""
        before = folders.sources_at(mine, "vecadd").digest
        made(mine, {place: f"{self.SOURCE}\n"})
        assert folders.sources_at(mine, "vecadd").digest != before

    def test_what_lies_elsewhere_and_is_not_included_leaves_it(self, mine: Path) -> None:
        before = folders.sources_at(mine, "vecadd").digest
        made(mine, {"../../beside.hpp": "x"})
        assert folders.sources_at(mine, "vecadd").digest == before

    def test_what_moves_with_its_surroundings_is_the_same(self, mine: Path, tmp_path: Path) -> None:
        before = folders.sources_at(mine, "vecadd").digest
        moved = shutil.copytree(tmp_path, tmp_path.with_name(f"{tmp_path.name}-moved")) / "at" / "mine"
        assert folders.sources_at(moved, "vecadd").digest == before

    @pytest.mark.parametrize("parent", ["__pycache__", ".cache"])
    def test_what_lies_below_a_hidden_folder_is_no_less_a_kernel(self, parent: str, tmp_path: Path) -> None:
        digests = set()
        for text in "ab":
            mine = made(tmp_path / parent / "mine", {"numpy.py": text})
            digests.add(folders.sources_at(mine, "vecadd").digest)
        assert len(digests) == 2


@pytest.mark.usefixtures("forgotten")
class TestProblem:
    def test_it_says_its_signature_and_its_answer_alone(self, axpy: Path) -> None:
        problem = registry.problem(registry.kernel_named(axpy))
        assert problem.inputs == ("alpha", "x", "y"), "as its reference names them"
        assert (problem.rule, problem.rate, problem.flops((5,))) == ("componentwise", "gbytes_per_second", 0)
        (n,) = problem.default_sizes
        assert 2 * n + n + 1 <= 1 << 22 < 3 * (n + 1) + 1
        assert problem.work((10,)) < problem.work((20,))

    def test_an_array_alone_is_right_in_every_bit(self, tmp_path: Path) -> None:
        body = PROBLEM.replace("return Reference(alpha * x + y, 4 * u * (abs(alpha * x) + abs(y)))", "return x")
        problem = registry.problem(registry.kernel_named(made(tmp_path / "axpy", {"problem.py": body})))
        reference = problem.reference([np.ones(1), np.ones(3), np.ones(3)])
        assert (reference.value.tolist(), reference.bound) == ([1, 1, 1], None)

    def test_after_a_change_nothing_is_stale(self, axpy: Path) -> None:
        """As in a notebook, where one process sees many versions."""
        assert "n" in registry.problem(registry.kernel_named(axpy)).dimensions
        made(axpy, {"problem.py": PROBLEM.replace("(1),(n),(n)->(n)", "(1),(m),(m)->(m)")})
        assert registry.problem(registry.kernel_named(axpy)).dimensions == ("m",)

    def test_a_function_computes_by_the_source_as_it_is(self, axpy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Python would take bytecode for that of any text of the same second and length."""
        monkeypatch.setattr(sys, "dont_write_bytecode", False)
        ones = np.ones(3, np.float32)
        for factor in (1, 2):
            made(axpy, {"lecture/numpy.py": IN_NUMPY.replace("z += y", f"z += {factor} * y")})
            os.utime(axpy / "lecture" / "numpy.py", (0, 0))
            registry.kernel_named(axpy)
            assert (pb.axpy(ones[:1], ones, ones, backend="numpy") == 1 + factor).all()

    def test_one_that_is_refused_leaves_the_others(self, axpy: Path, tmp_path: Path) -> None:
        registry.kernel_named(axpy)
        other = made(tmp_path / "other" / "axpy", {"problem.py": PROBLEM})
        with pytest.raises(WrongRequest, match="bring the same name"):
            registry.kernel_named(other)
        assert registry.kernel_named(axpy) == "axpy"

    def test_python_takes_paths_too(self, axpy: Path) -> None:
        assert Request(kernels=[axpy]).kernels == ("axpy",)
        alpha, x = np.full(1, 2, np.float32), np.arange(4, dtype=np.float32)
        np.testing.assert_array_equal(pb.axpy(alpha, x, x, backend="numpy"), 3 * x)


FAULTS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "there is none": (lambda folder: folder / "nothing", "is no folder"),
    "no problem": (lambda folder: made(folder / "axpy", {"lecture/numpy.py": IN_NUMPY}), "has no problem.py"),
    "no identifier": (lambda folder: made(folder / "my-axpy", {"problem.py": PROBLEM}), "letters, digits"),
    "a kernel that is here": (lambda folder: made(folder / "matmul", {"problem.py": PROBLEM}), "has itself"),
    "a function": (lambda folder: made(folder / "compare", {"problem.py": PROBLEM}), "has itself"),
    "a command": (lambda folder: made(folder / "sweep", {"problem.py": PROBLEM}), "has itself"),
}


@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_folder_that_cannot_be_a_kernel_is_one_line(fault: str, tmp_path: Path) -> None:
    make, words = FAULTS[fault]
    with pytest.raises(WrongRequest, match=words) as raised:
        registry.kernel_named(make(tmp_path))
    assert "\n" not in str(raised.value)


@pytest.mark.usefixtures("forgotten")
def test_two_folders_of_one_name_are_refused(tmp_path: Path) -> None:
    registry.kernel_named(made(tmp_path / "one" / "axpy", {"problem.py": PROBLEM}))
    with pytest.raises(WrongRequest, match="the same name"):
        registry.kernel_named(made(tmp_path / "other" / "axpy", {"problem.py": PROBLEM}))


@pytest.mark.usefixtures("forgotten")
class TestPathWithComma:
    """Commas part names and paths. A folder that is there as it is written is taken whole."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return made(tmp_path / "a,b" / "axpy", {"problem.py": PROBLEM, "lecture/numpy.py": IN_NUMPY})

    def test_is_one_kernel_for_commands(self, folder: Path) -> None:
        assert _options.kernels_in(str(folder)) == ["axpy"]

    def test_is_one_kernel_for_the_suite(self, folder: Path, tmp_path: Path) -> None:
        options = "--kernel", folder, "--backend", "numpy", "--quick", "--collect-only"
        run = run_python("-m", "pytest", "-q", "--pyargs", "py_backends.conformance", *options, cwd=tmp_path)
        assert run.returncode == 0, run.stdout + run.stderr
        assert "axpy" in run.stdout

    def test_in_a_list_is_one_line(self, folder: Path) -> None:
        with pytest.raises(argparse.ArgumentTypeError, match="a is no folder"):
            _options.kernels_in(f"vecadd,{folder}")


@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize("name", ["out", "threads"])
def test_an_input_with_the_name_of_an_option_is_a_fault_of_the_folder(name: str, tmp_path: Path) -> None:
    body = PROBLEM.replace("alpha, x, y)", f"alpha, x, {name})", 1)
    with pytest.raises(BrokenKernel, match=f"{name!r}, which is a word of Python or of the functions"):
        registry.problem(registry.kernel_named(made(tmp_path / "axpy", {"problem.py": body})))


@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"problem.py": PROBLEM}, "name it by --kernel"),
        ({"readme.md": "nothing"}, "named after its backend"),
    ],
)
def test_a_folder_without_sources_is_one_line(files: dict[str, str], words: str, tmp_path: Path) -> None:
    with pytest.raises(WrongRequest, match=words):
        registry.add_sources(made(tmp_path / "mine", files), "vecadd")


@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize("name", ["tuned", "lecture"])
def test_sources_replace_no_variant_of_the_kernel(name: str, tmp_path: Path) -> None:
    """What was taken for the project's own would be the user's."""
    before = registry.kernel_files("vecadd", "numpy")
    with pytest.raises(WrongRequest, match=f"{name} is named as a variant that vecadd has: rename the folder"):
        registry.add_sources(made(tmp_path / name, {"numpy.py": IN_NUMPY}), "vecadd")
    assert registry.kernel_files("vecadd", "numpy") == before


@pytest.mark.usefixtures("forgotten")
def test_of_two_folders_of_sources_of_one_name_none_replaces_the_other(tmp_path: Path) -> None:
    """One that is named again, as in a notebook, is no other. Nor are those of another kernel."""
    one, other = (made(tmp_path / each / "mine", {"numpy.py": IN_NUMPY}) for each in ("one", "other"))
    for _ in range(2):
        registry.add_sources(one, "vecadd")
    registry.add_sources(other, "dot")
    with pytest.raises(WrongRequest, match=f"{one} and {other} have one name, that of the variant: rename one"):
        registry.add_sources(other, "vecadd")
    assert registry.kernel_files("vecadd", "numpy")["mine"][0] == one / "numpy.py"


@pytest.mark.usefixtures("forgotten")
def test_sources_of_a_broken_kernel_say_why_it_is_broken(tmp_path: Path) -> None:
    """It is not an unknown one."""
    kernel = registry.kernel_named(made(tmp_path / "axpy", {"problem.py": "import no_such_thing\n"}))
    with pytest.raises(BrokenKernel, match="no_such_thing"):
        registry.add_sources(made(tmp_path / "mine", {"numpy.py": ""}), kernel)


@pytest.mark.parametrize("kernel", ["", "--kernel vecadd,dot"])
def test_sources_are_of_one_kernel(kernel: str, tmp_path: Path) -> None:
    run = run_python("-m", "py_backends", "compare", "--sources", tmp_path, *kernel.split())
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert "name it by --kernel" in run.stderr


@pytest.mark.usefixtures("forgotten")
def test_what_is_handed_over_is_read_as_it_was(tmp_path: Path) -> None:
    """A path that is no text in UTF-8 too."""
    path = tmp_path / os.fsdecode(b"\xff='\"\n,") / "mine"
    given = [
        folders.Folder("axpy", path, has_problem=True),
        folders.Folder("dot", path, has_problem=False),
        folders.Folder("dot", path, has_problem=False, made_of=tmp_path / "a=b.cpp"),
    ]
    for each in given:
        folders.add(each)
    folders._known.clear()  # as in another process
    assert folders.every() == given


def test_a_path_has_a_separator() -> None:
    paths = "./axpy", "..", Path("axpy")
    assert all(map(folders.is_path, paths))
    assert not any(map(folders.is_path, ("axpy", 3)))


WINDOW = """
import numpy as np
from py_backends.contract import Problem

class Valid(Problem):
    name, signature, nonzero_sizes = "valid", "(n)->(n)", ("n", "window")
    numbers = {"window": 5}

    def shapes(self, sizes):
        n, window = sizes
        if window > n:
            raise ValueError("window is at most n")
        return (n,), (n - window + 1,)

    @staticmethod
    def function(x, window):
        return np.convolve(x, np.ones(window) / window, mode="valid")

PROBLEM = Valid()
"""
WINDOW_IN_NUMPY = """
import numpy as np

def valid(x, z, n, window):
    z[:] = np.convolve(x, np.ones(window, x.dtype) / x.dtype.type(window), mode="valid")
"""


@pytest.mark.usefixtures("forgotten")
def test_the_shape_of_a_result_may_depend_on_a_number(tmp_path: Path) -> None:
    """Of `out`, it came from the default of the number."""
    folder = made(tmp_path / "valid", {"problem.py": WINDOW, "lecture/numpy.py": WINDOW_IN_NUMPY})
    function = getattr(pb, registry.kernel_named(folder))
    x = np.arange(19, dtype=np.float32)
    for window in (1, 3):
        out = np.empty(20 - window, np.float32)
        assert function(x, window=window, backend="numpy", out=out) is out
        assert function(x, window=window, backend="numpy").shape == out.shape
        assert out[1] == x[1 : 1 + window].mean()
    with pytest.raises(ValueError, match=r"^valid takes window of at least 1: got 0$"):
        function(x, window=0, backend="numpy")
    with pytest.raises(ValueError, match="window is at most n"):
        function(x, window=20, backend="numpy")


@pytest.mark.usefixtures("forgotten")
def test_nonzero_sizes_name_sizes_and_numbers(tmp_path: Path) -> None:
    """The message said neither that it meant sizes of arrays alone, nor that a number may be among them, as now."""
    wrong = WINDOW.replace('("n", "window")', '("n", "width")')
    name = registry.kernel_named(made(tmp_path / "valid", {"problem.py": wrong}))
    words = "its nonzero_sizes have 'width', which is none of its sizes and numbers: n, window"
    with pytest.raises(BrokenKernel, match=words):
        registry.problem(name)


BROKEN = (
    WINDOW.replace("window > n", "n < 0")
    .replace("n - window + 1", "n")
    .replace('("n", "window")', '("n",)')
    .replace('np.ones(window) / window, mode="valid")', "np.ones(window))[: x.size]")
)
"""It allows a window of 0, and its function does not."""


@OF_FOLDERS
def test_a_fault_of_a_problem_is_told_once_with_its_sizes_and_its_line(tmp_path: Path) -> None:
    """The suite had 168 equal failures of one fault, which told neither the sizes nor the line."""
    source = (
        "def valid(x, z, n, window):\n    z[:] = 0\n    for i in range(window):\n        z[i:] += x[: max(0, n - i)]\n"
    )
    folder = made(tmp_path / "valid", {"problem.py": BROKEN, "lecture/numpy.py": source})
    line = 1 + BROKEN.splitlines().index("        return np.convolve(x, np.ones(window))[: x.size]")
    fault = f"fails at n 19, window 0: ValueError: v cannot be empty (valid/problem.py, line {line})"
    for kinds in ("layouts,out,drawn", "special-values,scales", "drawn"):  # those of calls, of trials, and drawn ones
        options = "--kernel", folder, "--backend", "numpy", "--kind", kinds, "-k", "float or drawn", "--quick"
        run = run_python("-m", "pytest", "-q", "--pyargs", "py_backends.conformance", *options, cwd=tmp_path)
        assert run.returncode == 1, run.stdout + run.stderr
        assert "1 failed, " in run.stdout, run.stdout
        assert (" skipped" in run.stdout) == (kinds != "drawn"), run.stdout
        assert f"reference: the problem of {folder}" in run.stdout
        assert fault in run.stdout or "layouts" not in kinds
        assert f"(valid/problem.py, line {line})" in run.stdout
    run = run_python(
        *("-m", "py_backends", "compare", "--kernel", folder, "--backend", "numpy", "--shape", "valid=19x0"),
        cwd=tmp_path,
    )
    assert (run.returncode, fault in " ".join(run.stdout.split())) == (1, True), run.stdout + run.stderr


REFUSING = """
from py_backends.contract import Problem

class Choosy(Problem):
    name, signature, default_sizes = "choosy", "(n)->(n)", (100_000_003,)

    def shapes(self, sizes):
        if sizes != self.default_sizes:
            raise ValueError("n has to be 100000003")
        return sizes, sizes

    @staticmethod
    def function(x):
        return x + 1

PROBLEM = Choosy()
"""


@OF_FOLDERS
@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (REFUSING, "sizes: shapes refuses all of the 42 sizes that were tried, the first 1: n has to be 100000003"),
        (REFUSING.replace("raise ", "return sizes[3] + "), "fails at n 1: IndexError: tuple index out of range"),
    ],
    ids=["refuses", "fails"],
)
def test_a_problem_that_takes_no_size_of_the_suite_fails_once(problem: str, words: str, tmp_path: Path) -> None:
    """It passed but for a traceback of hypothesis, as no case was tried."""
    source = "def choosy(x, z, n):\n    z[:] = x + x.dtype.type(1)\n"
    folder = made(tmp_path / "choosy", {"problem.py": problem, "lecture/numpy.py": source})
    options = "--kernel", folder, "--backend", "numpy", "--quick"
    run = run_python("-m", "pytest", "-q", "--pyargs", "py_backends.conformance", *options, cwd=tmp_path)
    assert run.returncode == 1, run.stdout + run.stderr
    assert words in run.stdout
    assert "1 failed, 1 passed" in run.stdout, run.stdout
    assert "Traceback" not in run.stdout


CELLS = """from py_backends.contract import Problem

class Cells(Problem):
    name, signature, dtypes = "cells", "(n)->(n)", ("int8",)

    def reference(self, inputs):
        (cells,) = inputs
        return Reference((cells != 0).astype(cells.dtype))

    def draw(self, sizes, dtype, generator):
        yield generator.integers(0, 2, sizes[0])

    rule = "bitwise"

from py_backends.contract import Reference
PROBLEM = Cells()
"""


@OF_FOLDERS
def test_the_suite_says_that_its_inputs_are_not_those_of_draw(tmp_path: Path) -> None:
    """A source that is right of those alone passed every comparison, and nothing told why it fails here."""
    source = "def cells(a, z, n):\n    z[:] = a\n"
    folder = made(tmp_path / "cells", {"problem.py": CELLS, "lecture/numpy.py": source})
    options = "--kernel", folder, "--backend", "numpy", "--quick"
    run = run_python("-m", "pytest", "-q", "--pyargs", "py_backends.conformance", *options, cwd=tmp_path)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "1 is right; its inputs have any values, not those of draw" in run.stdout, run.stdout


def test_a_shape_that_the_problem_refuses_is_wrong_usage(tmp_path: Path) -> None:
    """It blamed the folder, and asked its author to repair it."""
    folder = made(tmp_path / "valid", {"problem.py": WINDOW, "lecture/numpy.py": WINDOW_IN_NUMPY})
    for shape, words in (("10x0", "valid takes window of at least 1: got 0"), ("3x4", "window is at most n")):
        options = "--kernel", folder, "--backend", "numpy", "--shape", f"valid={shape}"
        run = run_python("-m", "py_backends", "compare", *options, cwd=tmp_path)
        told = f"py-backends compare: error: valid does not take the shape {shape}: {words} (try"
        assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1), run.stderr
        assert run.stderr.startswith(told), run.stderr
