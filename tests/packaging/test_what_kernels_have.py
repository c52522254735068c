"""What kernels may have beyond the project's: several outputs, arrays of their own dtype, real numbers, files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import CLONE, run_python
from conftest import after_a_change
from written_files import made

import py_backends as pb
from py_backends import registry
from py_backends.commands import _options
from py_backends.contract import Problem
from py_backends.errors import BrokenKernel, WrongRequest
from py_backends.functions.targets import targets_of
from py_backends.harness.case import Case
from py_backends.harness.request import Request
from py_backends.plugins import checked_problem
from py_backends.results.check import check_outputs, references_of
from py_backends.signature import Signature

pytestmark = pytest.mark.stamped

OF_PROBLEMS = after_a_change("py_backends/problem.py", "py_backends/signature.py", "py_backends/plugins.py")

FOLDERS = CLONE / "examples" / "kernel_folders"
LAYER_NORM, SPMV = FOLDERS / "layer_norm", FOLDERS / "spmv"
AXPY = CLONE / "examples" / "kernel_axpy" / "axpy"
FLOAT32 = np.dtype(np.float32)


def problem_of(folder: Path) -> Problem:
    return registry.problem(registry.kernel_named(folder))


class TestSignature:
    CSR = Signature.parse("(nonzeros),(nonzeros):int32,(m+1):int32,(n)->(m),(m):int64")

    def test_a_length_may_be_a_size_and_some_more(self) -> None:
        assert self.CSR.dimensions == ("m", "nonzeros", "n")
        assert self.CSR.shapes((3, 5, 7)) == ((5,), (5,), (4,), (7,), (3,), (3,))
        assert self.CSR.sizes("spmv", "abcd", ((5,), (5,), (4,), (7,))) == (3, 5, 7)
        assert self.CSR.places is None, "who reads places knows no more than sizes"

    def test_shapes_that_do_not_fit_are_refused(self) -> None:
        with pytest.raises(ValueError, match=r"spmv takes a of nonzeros elements.* c of m\+1 elements"):
            self.CSR.sizes("spmv", "abcd", ((5,), (5,), (0,), (7,)))

    def test_an_array_may_have_a_dtype_of_its_own(self) -> None:
        assert (self.CSR.outputs, self.CSR.dtypes) == (2, (None, "int32", "int32", None, None, "int64"))
        with pytest.raises(WrongRequest, match="has an array of int7, and there are float32"):
            Signature.parse("(n):int7->(n)")


@pytest.mark.parametrize(
    ("given", "dtypes", "words"),
    [
        (
            "(n)->(n)",
            ("int32",),
            (
                r"its dtypes have 'int32': a run has one of float32, float64, float16, bfloat16, int8; "
                r"an input of int32 says so in the signature$"
            ),
        ),
        (
            "(n):int32->(n)",
            ("float32",),
            (
                r"one has to be without: leave off the :int32 of one, and set dtypes to what a "
                r"run may give it, of float32, float64, float16, bfloat16, int8$"
            ),
        ),
    ],
)
def test_dtypes_that_no_run_can_have_are_refused(given: str, dtypes: tuple[str, ...], words: str) -> None:
    """A problem that draws for itself was taken with them, and no command could run it."""

    class Cells(Problem):
        name, signature = "cells", given

        @staticmethod
        def function(x):
            return x

        def draw(self, sizes, dtype, generator):
            yield generator.integers(0, 2, sizes)

    Cells.dtypes = dtypes
    with pytest.raises(WrongRequest, match=words):
        checked_problem(Cells(), "cells")


@pytest.mark.usefixtures("forgotten")
class TestFunction:
    def test_several_outputs_are_a_tuple(self) -> None:
        problem_of(LAYER_NORM)
        x = np.random.default_rng(1).standard_normal((3, 50)).astype(np.float32)
        y, r = pb.layer_norm(x, backend="numpy")
        np.testing.assert_allclose(y, (x - x.mean(1, keepdims=True)) * r[:, None], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(r, 1 / np.sqrt(x.var(1) + 1e-5), rtol=1e-5)
        outs = np.empty_like(y), np.empty_like(r)
        given = pb.layer_norm(x, out=outs, epsilon=0.5, backend="numpy")
        assert [made is out for made, out in zip(given, outs, strict=True)] == [True, True]
        np.testing.assert_allclose(outs[1], 1 / np.sqrt(x.var(1) + 0.5), rtol=1e-5)

    @pytest.mark.parametrize(
        ("out", "words"),
        [
            (lambda y, _: y, "layer_norm has 2 outputs: out must be a tuple of as many arrays"),
            (lambda y, _: (y,), "layer_norm has 2 outputs: out must be a tuple of as many arrays"),
            (lambda y, r: (y, r.astype("f8")), "out must have the result's dtype float32, not float64"),
            (lambda y, _: (y, y[0, :3]), "outputs of layer_norm share memory; pass arrays that lie apart"),
        ],
    )
    def test_outputs_that_do_not_fit_are_refused(self, out: Any, words: str) -> None:
        problem_of(LAYER_NORM)
        x = np.ones((3, 50), np.float32)
        with pytest.raises((TypeError, ValueError), match=words):
            pb.layer_norm(x, out=out(np.empty_like(x), np.empty(3, np.float32)), backend="numpy")

    def test_indices_have_their_own_dtype(self) -> None:
        problem_of(SPMV)
        values, x = np.array([2, 3], np.float64), np.array([5, 7], np.float64)
        columns, begins = np.array([1, 0], np.int32), np.array([0, 2, 2], np.int32)
        assert pb.spmv(values, columns, begins, x, backend="numpy").tolist() == [29, 0]
        with pytest.raises(TypeError, match=r"columns of spmv must be int32, not int64: .* columns.astype\('int32'\)"):
            pb.spmv(values, columns.astype("i8"), begins, x, backend="numpy")
        with pytest.raises(TypeError, match="the inputs must have one dtype: values is float64, x is float32"):
            pb.spmv(values, columns, begins, x.astype("f4"), backend="numpy")

    def test_real_numbers_are_rounded_to_the_arithmetic(self) -> None:
        """So that every model, Python with its doubles too, computes with the same number."""
        problem = problem_of(AXPY)
        assert problem.rounded((9, 0.1), FLOAT32) == (9, float(np.float32(0.1)))
        assert [number.dtype.name for number in problem.scalars((9, 0.1), FLOAT32)] == ["int64", "float32"]
        ones = np.ones(3, np.float32)
        assert (pb.axpy(ones, ones, alpha=0.1, backend="numpy") == np.float32(0.1) + np.float32(1)).all()
        with pytest.raises(TypeError, match="alpha of axpy must be a real number, not str"):
            pb.axpy(ones, ones, alpha="2", backend="numpy")

    def test_help_tells_it(self) -> None:
        problem_of(LAYER_NORM)
        told = pb.layer_norm.__doc__
        assert "return a tuple of its results: an array of m x n elements; an array of m elements" in told
        assert "epsilon: a real number. 1e-05 without it." in told


@pytest.mark.usefixtures("forgotten")
def test_the_first_wrong_output_is_told() -> None:
    problem = problem_of(LAYER_NORM)
    x = np.random.default_rng(1).standard_normal((3, 50)).astype(np.float32)
    references = references_of(problem, [x], (3, 50, 1e-5), FLOAT32)
    right = [reference.value.astype(np.float32) for reference in references]
    assert check_outputs(right, references, problem.rule).reason is None
    wrong = check_outputs([right[0], right[1] * 1.01], references, problem.rule)
    assert (wrong.reason or "").startswith("output 2: 3 of 3 elements are wrong, the first at [0]")


@pytest.mark.usefixtures("forgotten")
class TestShape:
    def test_real_numbers_stand_behind_sizes(self) -> None:
        problem_of(AXPY)
        assert _options._shape("axpy=1000x-2.5e-1") == ("axpy", (1000, -0.25))
        (sizes,) = Request(kernels=["axpy"], shapes={"axpy": [(1000, 3)]}).chosen_shapes(registry.problem("axpy"))
        assert sizes == (1000, 3.0)
        assert isinstance(sizes[1], float)

    @pytest.mark.parametrize(
        ("sizes", "words"),
        [
            ((1000.5, 2.0), "n of axpy must be a whole number, not 1000.5"),
            ((1000, float("nan")), "alpha of axpy must be a finite number, not nan"),
        ],
    )
    def test_other_numbers_are_refused(self, sizes: tuple[float, ...], words: str) -> None:
        problem_of(AXPY)
        with pytest.raises(WrongRequest, match=words):
            Request(kernels=["axpy"], shapes={"axpy": [sizes]})


@pytest.mark.usefixtures("forgotten")
class TestData:
    BODY = (
        (SPMV / "problem.py")
        .read_text()
        .replace("    default_sizes = (200_003, 2_000_003, 100_003)\n", '    data = "a.npz"\n')
    )

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        folder = made(tmp_path / "spmv", {"problem.py": self.BODY})
        arrays = {"values": [2.0, 3.0], "columns": [1, 0], "begins": [0, 2, 2], "x": [5.0, 7.0]}
        np.savez(folder / "a.npz", **{name: np.array(each) for name, each in arrays.items()})
        return folder

    def test_its_arrays_are_the_inputs_at_their_sizes(self, folder: Path) -> None:
        problem, draw = problem_of(folder), np.random.default_rng(1)
        assert problem.default_sizes == (2, 2, 2)
        assert [array.tolist() for array in problem.given((2, 2, 2), FLOAT32, draw)][:2] == [[2, 3], [1, 0]]
        assert [len(array) for array in problem.given((3, 5, 4), FLOAT32, draw)] == [5, 5, 4, 4]

    def test_what_is_missing_is_one_line(self, folder: Path) -> None:
        np.savez(folder / "a.npz", values=np.ones(3))
        with pytest.raises(BrokenKernel, match=r"a\.npz has no array 'columns': it has values"):
            problem_of(folder)
        (folder / "a.npz").write_bytes(b"text")
        with pytest.raises(BrokenKernel, match="is no file of NumPy"):
            problem_of(folder)


@pytest.mark.parametrize(
    ("drawn", "words"),
    [
        ([(3, 5)], "draw yields 1 of 2 inputs: labels is missing"),
        ([(3, 5), (3,), (3,)], "draw yields more arrays than the inputs logits, labels"),
        ([(3, 5), (5,)], r"draw yields labels of the shape \(5,\), and it has \(3,\)"),
        ([(5, 3), (3,)], r"draw yields logits of the shape \(5, 3\), and it has \(3, 5\)"),
    ],
)
def test_inputs_that_do_not_fit_are_named(drawn: list[tuple[int, ...]], words: str) -> None:
    """What zip and a copy said of them named none. One with as many elements was taken, however they lay."""

    class Losses(Problem):
        name, signature = "losses", "(m,n),(m):int32->(m)"

        @staticmethod
        def function(logits, labels):
            return logits[np.arange(labels.size), labels]

        def draw(self, sizes, dtype, generator):
            return map(np.zeros, drawn)

    with pytest.raises(WrongRequest, match=f"^{words}$"):
        Case(Losses(), (3, 5), FLOAT32, seed=1)


LIFE = """from py_backends.contract import Problem

class Life(Problem):
    name, signature, dtypes = "life", "(n)->(n)", ("int8",)

    @staticmethod
    def function(cells):
        return cells

PROBLEM = Life()
"""


@OF_PROBLEMS
@pytest.mark.usefixtures("forgotten")
def test_a_kernel_without_the_usual_dtype_says_what_to_add(tmp_path: Path) -> None:
    """Beside others it was left out without a word."""
    folder = made(tmp_path / "life", {"problem.py": LIFE, "lecture/numpy.py": "def life(a, b, n):\n    b[:] = a\n"})
    how: Any = {"backends": ["numpy"], "budget": 1}
    with pytest.raises(WrongRequest, match=r"nothing runs in float32 in numpy: life has int8 alone: add --dtype int8$"):
        pb.compare([str(folder)], **how)
    shapes = {"vecadd": [(9,)], "life": [(9,)]}
    ran, left_out = pb.compare(["vecadd", str(folder)], shapes=shapes, **how).rows
    assert (ran.kernel, ran.status) == ("vecadd", "ok")
    assert (left_out.kernel, left_out.status, left_out.reason) == ("life", "skipped", "life has int8 alone")
    assert left_out.fix == "add --dtype int8"
    assert [row.status for row in pb.compare([str(folder)], dtypes=["int8"], shapes={"life": [(9,)]}, **how).rows] == [
        "ok"
    ]
    _, other = pb.compare(["matmul", "vecadd"], dtypes=["int8"], shapes={"matmul": [(3, 3, 3)]}, **how).rows
    assert other.reason == "vecadd has float32, float64, float16 and bfloat16"


def of_sources(folder: Path) -> list[Any]:
    names = sorted(path.stem for path in (folder / "lecture").iterdir() if path.is_file())
    return [
        pytest.param(folder, name, marks=[getattr(pytest.mark, name)], id=f"{folder.name}-{name}") for name in names
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("folder", "backend"), [each for kernel in (LAYER_NORM, SPMV) for each in of_sources(kernel)])
def test_the_suite_finds_every_source_right(folder: Path, backend: str, tmp_path: Path) -> None:
    options = "--kernel", folder, "--backend", backend, "--quick"
    run = run_python("-m", "pytest", "-q", "--pyargs", "py_backends.conformance", *options, cwd=tmp_path, longest=600)
    assert run.returncode == 0, run.stdout
    assert " passed" in run.stdout


IN_MODELS = {
    "python.py": "def axpy(x, y, z, n, alpha):\n    for i in range(n):\n        z[i] = alpha * x[i] + y[i]\n",
    "jax.py": "def axpy(x, y, z, n, alpha):\n    return alpha * x + y\n",
    "numba_cpu.py": """from numba import njit, prange
@njit(parallel=True, nogil=True)
def axpy(x, y, z, n, alpha):
    for i in prange(n):
        z[i] = alpha * x[i] + y[i]
""",
    "numba_cuda.py": """# ---
# Work items: n, in groups of 256
from numba import cuda
@cuda.jit
def axpy(x, y, z, n, alpha):
    i = cuda.grid(1)
    if i < n:
        z[i] = alpha * x[i] + y[i]
""",
    "triton.py": """# ---
# Work items: ceil(n / 1024), in groups of 1
import triton
import triton.language as tl
@triton.jit
def axpy(x, y, z, n, alpha):
    i = tl.program_id(0).to(tl.int64) * 1024 + tl.arange(0, 1024)
    tl.store(z + i, alpha * tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)
""",
    "cutile.py": """# ---
# Work items: ceil(n / 1024), in groups of 1
import cuda.tile as ct
@ct.kernel
def axpy(x, y, z, n, alpha):
    i = ct.bid(0)
    ct.store(z, (i,), alpha * ct.load(x, (i,), (1024,)) + ct.load(y, (i,), (1024,)))
""",
    "cuda.cu": """// ---
// Work items: n, in groups of 256
template <typename T>
__global__ void axpy(const T* x, const T* y, T* z, long long n, T alpha) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = alpha * x[i] + y[i];
}
""",
    "sycl.cpp": """// ---
// Work items: n, in groups of 256
#include <sycl/sycl.hpp>
template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((sycl::ext::oneapi::experimental::nd_range_kernel<1>))
void axpy(const T* x, const T* y, T* z, std::int64_t n, T alpha) {
  const std::int64_t i = sycl::ext::oneapi::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < n) z[i] = alpha * x[i] + y[i];
}
""",
    "stdpar.cpp": """#include <algorithm>
#include <cstdint>
#include <execution>
template <typename T>
static void axpy(const T* x, const T* y, T* z, std::int64_t n, T alpha) {
  std::transform(std::execution::par_unseq, x, x + n, y, z, [=](T a, T b) { return alpha * a + b; });
}
""",
    "avx.cpp": """#include <cstdint>
#include "simd.hpp"
template <typename T>
static void axpy(const T* x, const T* y, T* z, std::int64_t n, T alpha) {
  for (std::int64_t i = 0; i < n; ++i) z[i] = alpha * x[i] + y[i];
}
""",
    "mpi.py": """def blocks(rank, ranks, widths, n, alpha):
    part = slice(n * rank // ranks, n * (rank + 1) // ranks)
    return (part,), (part,), (part,)
def axpy(ranks, local, x, y, z, n, alpha):
    local(x, y, z, alpha=alpha)
""",
}
"""axpy in the models in which the example has no source."""


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_real_number_reaches_every_model(dtype: str, tmp_path: Path) -> None:
    """One that no format holds: so a model that gets it with more digits than others is seen."""
    texts = {f"axpy/lecture/{name}": text for name, text in IN_MODELS.items()}
    own = {str(path.relative_to(AXPY.parent)): path.read_text() for path in AXPY.rglob("*.*") if path.suffix != ".pyc"}
    folder, results = made(tmp_path, texts | own) / "axpy", tmp_path / "results.json"
    shape = "--shape", "axpy=1009x0.1"
    options = "--kernel", folder, "--dtype", dtype, *shape, "--budget", "20", "--json", results
    run = run_python("-m", "py_backends", "compare", *options, cwd=tmp_path, longest=600)
    rows = json.loads(results.read_text())["rows"]
    models = {path.stem for path in (folder / "lecture").iterdir() if path.is_file()}
    there = {name for name in models if any(each.available for each in targets_of(name))}
    tried = [row for row in rows if row["backend"] in there and row["status"] != "unavailable"]
    found = {row["backend"]: (row["status"], row["reason"]) for row in tried}
    assert found.keys() == there
    assert {status for status, _ in found.values()} <= {"ok", "emulated"}, found
    assert run.returncode == 0, run.stdout


@OF_PROBLEMS
@pytest.mark.openmp
@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("T alpha", "std::int64_t alpha", "double alpha"),
        ("const T* y", "const float* y, const T* w", "dtypes::float64* y"),
    ],
)
def test_a_source_in_cpp_has_the_parameters_of_its_kernel(before: str, after: str, words: str, tmp_path: Path) -> None:
    """Else it would read the bits of a real number as a whole one, or past an array."""
    own = {path.name: path.read_text() for path in AXPY.glob("problem.py")}
    source = (AXPY / "lecture" / "openmp.cpp").read_text().replace(before, after)
    folder = made(tmp_path / "axpy", own | {"lecture/openmp.cpp": source})
    options = "--kernel", folder, "--backend", "openmp", "--dtype", "float64", "--budget", "2"
    run = run_python("-m", "py_backends", "compare", *options, cwd=tmp_path)
    assert run.returncode == 1
    assert "its parameters are not those of its kernel: dtypes::float64* x" in " ".join(run.stdout.split())
    assert words in run.stdout


@OF_PROBLEMS
@pytest.mark.openmp
def test_a_comparison_shows_all_of_it(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    shapes = "--shape", "layer_norm=20x30x0.125", "--shape", "spmv=50x300x40", "--shape", "axpy=1009x-0.5"
    kernels = ",".join(map(str, (AXPY, LAYER_NORM, SPMV)))
    options = "--kernel", kernels, "--backend", "numpy,openmp", *shapes, "--budget", "4", "--json", results
    run = run_python("-m", "py_backends", "compare", *options, cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    rows = json.loads(results.read_text())["rows"]
    assert {(row["kernel"], row["status"]) for row in rows} == {(name, "ok") for name in ("axpy", "layer_norm", "spmv")}
    assert rows[0]["shape"] == {"n": 1009, "alpha": -0.5}
    assert "1009 x -0.5" in run.stdout
