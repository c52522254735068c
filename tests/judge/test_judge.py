"""A file of anybody's is judged by one command: in this project's form, or as people write them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from commands import CLONE, run_command
from judged import OF_JUDGE, judge
from written_files import made

from py_backends import registry
from py_backends.commands.judge import doubts, source, table, trying
from py_backends.commands.judge.judging import Judging, for_an_author
from py_backends.commands.judge.remarks import remarks
from py_backends.commands.judge.source import Added, Given
from py_backends.commands.judge.trying import Outcome
from py_backends.harness import compare
from py_backends.harness.compare import checked_settings
from py_backends.harness.roofs import SEEMS_TO_TAKE
from py_backends.results.report import Report, Row

pytestmark = pytest.mark.stamped

LECTURE = CLONE / "kernels" / "matmul" / "lecture"
SGEMM = """\
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cublas_v2.h>
#include <cuda_runtime.h>

__global__ void sgemm_naive(int M, int N, int K, float alpha, const float *A,
                            const float *B, float beta, float *C) {
  const uint row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint column = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < M && column < N) {
    float sum = 0.0f;
    for (int p = 0; p < K; ++p) sum += A[row * K + p] * B[p * N + column];
    C[row * N + column] = alpha * sum + beta * C[row * N + column];
  }
}
"""
ITS_CALL = "sgemm_naive(m, n, k, alpha=1, a, b, beta=0, c), grid ceil(m / 32) x ceil(n / 32), block 32 x 32"
WITH_HOST_CODE = """\
// py-backends: sgemm<16>(m, n, k, a, b, c), grid ceil(n / 16) x ceil(m / 16), block 256
#include <stdio.h>
#define CHECK(x) do { if ((x) != cudaSuccess) { printf("{"); exit(1); } } while (0)
template <const int T>
__global__ __launch_bounds__(T * (T)) void sgemm(int M, int N, int K, const float* A, const float* B, float* C) {
  __shared__ float a[T][T], b[T][T];
  const int x = threadIdx.x % T, y = threadIdx.x / T, column = blockIdx.x * T + x, row = blockIdx.y * T + y;
  float sum = 0.0f;
  for (int first = 0; first < K; first += T) {
    a[y][x] = row < M && first + x < K ? A[row * K + first + x] : 0.0f;
    b[y][x] = column < N && first + y < K ? B[(first + y) * N + column] : 0.0f;
    __syncthreads();
    for (int p = 0; p < T; ++p) sum += a[y][p] * b[p][x];
    __syncthreads();
  }
  if (row < M && column < N) C[row * N + column] = sum;
}
void run(int m, int n, int k, float* a, float* b, float* c) {
  sgemm<16><<<dim3((n + 15) / 16, (m + 15) / 16), 256>>>(m, n, k, a, b, c);
  CHECK(cudaDeviceSynchronize());
}
int main() { printf("}\\n"); }
"""
WITH_ATOMICS = """\
// py-backends: dot<T>(n, a, b, c=0), grid ceil(n / 64), block 64
// Order: any, as blocks end
template <typename T>
__global__ void dot(int n, const T* a, const T* b, T* c) {
  __shared__ T sum;
  __shared__ int products, last, first;
  __shared__ unsigned taken;
  if (threadIdx.x == 0) sum = 0, products = 0, last = -1, first = 64, taken = 0;
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    atomicAdd(&sum, a[i] * b[i]);
    atomicAdd(&products, 1);
    atomicMax(&last, (int)threadIdx.x);
    atomicMin(&first, (int)threadIdx.x);
  }
  __syncthreads();
  const bool whole = first == 0 && products == last + 1;
  if (whole && atomicCAS(&taken, 0u, 1u) == 0 && atomicExch(&taken, 2u) == 1) atomicAdd(c, sum);
}
"""
ONE_OF_ITS_OWN = """
#if __CUDA_ARCH__ < 600
__device__ double atomicAdd(double* address, double value) {
  unsigned long long* const bits = (unsigned long long*)address;
  unsigned long long old = *bits, seen;
  do {
    seen = old;
    old = atomicCAS(bits, seen, __double_as_longlong(value + __longlong_as_double(seen)));
  } while (seen != old);
  return __longlong_as_double(old);
}
#endif
"""
"""For old GPUs, as CUDA's guide has it."""
IN_OPENCL = """\
// py-backends: matmul(m, n, k, a, b, c), work items n x m, in groups of 8 x 8
__kernel void matmul(int M, int N, int K, __global const float *A, __global const float *B, __global float *C) {
  int j = get_global_id(0), i = get_global_id(1);
  if (i >= M || j >= N) return;
  float sum = 0;
  for (int p = 0; p < K; p++) sum += A[i * K + p] * B[p * N + j];
  C[i * N + j] = sum;
}
"""
IN_CPP = """\
// py-backends: matmul(a, b, m, k, n, c=0)
#include <cstdio>
void matmul(const float *A, const float *B, int rows, int inner, int columns, float *C) {
#pragma omp parallel for
  for (int i = 0; i < rows; i++)
    for (int p = 0; p < inner; p++)
      for (int j = 0; j < columns; j++) C[i * columns + j] += A[i * inner + p] * B[p * columns + j];
}
int main() { std::printf("done"); }
"""
IN_NUMBA = """\
# py-backends: c = product(a, b)
import numpy as np
from numba import njit, prange

@njit(parallel=True)
def product(x, y):
    made = np.zeros((x.shape[0], y.shape[1]), x.dtype)
    for i in prange(x.shape[0]):
        for p in range(x.shape[1]):
            for j in range(y.shape[1]):
                made[i, j] += x[i, p] * y[p, j]
    return made
"""
BRIEFLY = "--shape", "matmul=64"


@OF_JUDGE
@pytest.mark.cuda
class TestCuda:
    def test_a_published_form_is_judged_unchanged(self, tmp_path: Path) -> None:
        answer = judge(tmp_path, "1_naive.cuh", SGEMM, "--call", ITS_CALL, *BRIEFLY)
        assert (answer.code, answer.judgement["right"], answer.failing) == (0, True, {}), answer.run
        assert (answer.judgement["backend"], answer.judgement["dtypes"]) == ("cuda", ["float32"])
        assert {row["status"] for row in answer.rows if row["backend"] == "cuda"} <= {"ok", "emulated"}

    @pytest.mark.parametrize(
        ("right", "wrong", "at_most"),
        [
            ("B[p * N + column]", "B[column * K + p]", 4),
            ("row < M && column < N", "row < M", 4),
        ],
        ids=["indices swapped", "no guard at the edge"],
    )
    def test_a_wrong_one_has_its_smallest_case(self, right: str, wrong: str, at_most: int, tmp_path: Path) -> None:
        text = f"// py-backends: {ITS_CALL}\n{SGEMM.replace(right, wrong)}"
        answer = judge(tmp_path, "mine.cu", text)
        assert (answer.code, answer.judgement["right"]) == (1, False), answer.run
        m, n, k = answer.failing["sizes"]
        assert m * n * k <= at_most
        assert Report.read(tmp_path / "results.json").judgement is not None

    def test_host_code_in_the_same_file_is_left_out(self, tmp_path: Path) -> None:
        answer = judge(tmp_path, "mine.cu", WITH_HOST_CODE, *BRIEFLY)
        assert (answer.code, answer.judgement["right"]) == (0, True), answer.run

    @pytest.mark.parametrize("own", ["", ONE_OF_ITS_OWN], ids=["CUDA's", "one of its own for old GPUs"])
    def test_atomics_are_emulated(self, own: str, tmp_path: Path) -> None:
        answer = judge(tmp_path, "mine.cu", own + WITH_ATOMICS, kernel="dot", dtype=None)
        assert (answer.code, answer.judgement["right"]) == (0, True), answer.run
        assert answer.judgement["dtypes"] == ["float32", "float64"]


@pytest.mark.parametrize(("kernel", "of_order"), [("matmul", True), ("vecadd", False)])
def test_what_ran_emulated_says_what_that_does_not_show(kernel: str, of_order: bool) -> None:
    text = registry.kernel_texts(kernel, "cuda")["lecture"]
    assert not text.in_any_order
    found = remarks(text, f"{text.text} atomicAdd(c, sum);", emulated=True)
    assert [each.partition(":")[0] for each in found[-1:]] == ["emulated blocks run one after the other"]
    assert ["Order: any" in each for each in found[:-1]] == [True] * of_order
    assert remarks(text, text.text, emulated=False) == []


OURS = {"openmp": ".cpp", "numba_cpu": ".py", "opencl": ".cl"}


@OF_JUDGE
@pytest.mark.parametrize("backend", [pytest.param(each, marks=getattr(pytest.mark, each)) for each in OURS])
def test_this_projects_form_needs_no_word_more(backend: str, tmp_path: Path) -> None:
    name = f"{backend}{OURS[backend]}"
    answer = judge(tmp_path, f"my_{name}", (LECTURE / name).read_text(), "--backend", backend, *BRIEFLY)
    assert (answer.code, answer.judgement["right"]) == (0, True), answer.run
    variants = {row["variant"] for row in answer.rows if row["backend"] == backend and row["status"] == "ok"}
    assert variants == {"judged", "lecture", "tuned"}
    assert "numpy" in {row["backend"] for row in answer.rows}


@OF_JUDGE
@pytest.mark.parametrize(
    ("backend", "name", "text"),
    [
        pytest.param("openmp", "mine.cpp", IN_CPP, marks=pytest.mark.openmp),
        pytest.param("numba_cpu", "mine.py", IN_NUMBA, marks=pytest.mark.numba_cpu),
        pytest.param("opencl", "mine.cl", IN_OPENCL, marks=pytest.mark.opencl),
    ],
)
def test_a_function_is_called_as_a_comment_says(backend: str, name: str, text: str, tmp_path: Path) -> None:
    answer = judge(tmp_path, name, text, "--backend", backend, *BRIEFLY)
    assert (answer.code, answer.judgement["right"]) == (0, True), answer.run
    assert next(row for row in answer.rows if row["variant"] == "judged")["status"] == "ok"
    assert "time: " in answer.run.stdout


@pytest.mark.usefixtures("forgotten")
def test_results_name_the_file_with_a_hash_by_which_diff_knows_it(tmp_path: Path) -> None:
    """The folder that is made of it lies elsewhere each time, and holds the same."""
    file, hashes = tmp_path / "mine.cpp", []
    for text in (IN_CPP, IN_CPP, IN_CPP.replace("done", "ended")):
        file.write_text(text)
        with source.added(source.checked("matmul", file, "cpp", None)):
            packages = registry.plugin_packages()
        assert [name for name in packages if Path(name).is_absolute()] == [str(file)]
        hashes.append(packages[str(file)])
    assert hashes[0] == hashes[1] != hashes[2]
    assert str(file) not in registry.plugin_packages()


@OF_JUDGE
@pytest.mark.openmp
def test_a_folder_is_a_kernel_too_with_real_numbers(tmp_path: Path) -> None:
    problem = """
from py_backends.contract import Problem

class Axpy(Problem):
    name, signature = "axpy", "(n),(n)->(n)"
    numbers = {"alpha": 2.5}

    def function(x, y, alpha):
        return alpha * x + y

PROBLEM = Axpy()
"""
    folder = made(tmp_path / "axpy", {"problem.py": problem})
    text = """// py-backends: saxpy(n, alpha, x, y, out)
void saxpy(int n, float s, const float* x, const float* y, float* z) {
  for (int i = 0; i < n; ++i) z[i] = s * x[i] + y[i];
}
"""
    options = "--backend", "cpp", "--shape", "axpy=1000x0.5"
    answer = judge(tmp_path, "mine.cpp", text, *options, kernel=folder)
    assert (answer.code, answer.judgement["right"]) == (0, True), answer.run
    wrong = judge(tmp_path, "mine.cpp", text.replace("+ y[i]", "- y[i]"), *options, kernel=folder)
    assert (wrong.code, wrong.judgement["right"]) == (1, False), wrong.run


OF_CONSTANT_LENGTHS = """
from py_backends.contract import Problem

class Turn(Problem):
    name, signature = "turn", "(3,3),(3)->(3)"

    def function(a, b):
        return {}

PROBLEM = Turn()
"""


@OF_JUDGE
@pytest.mark.numpy
def test_a_kernel_of_constant_lengths_alone_is_judged(tmp_path: Path) -> None:
    folder = made(tmp_path / "turn", {"problem.py": OF_CONSTANT_LENGTHS.format("a @ b")})
    for result, code in (("a @ b", 0), ("b @ a", 1)):
        text = f"def turn(a, b, out):\n    out[...] = {result}\n"
        answer = judge(tmp_path, "mine.py", text, "--backend", "numpy", kernel=folder)
        assert answer.code == code, answer.run


@OF_JUDGE
@pytest.mark.numpy
def test_a_broken_kernel_is_no_wrong_source(tmp_path: Path) -> None:
    folder = made(tmp_path / "turn", {"problem.py": OF_CONSTANT_LENGTHS.format("a.no_such_name")})
    answer = judge(
        tmp_path, "mine.py", "def turn(a, b, out):\n    out[...] = a @ b\n", "--backend", "numpy", kernel=folder
    )
    assert answer.code == 2
    assert "no_such_name" in answer.run.stderr


@OF_JUDGE
@pytest.mark.numpy
def test_a_result_that_is_not_written_may_be_the_calls_fault(tmp_path: Path) -> None:
    text = "# py-backends: add(a, b, c)\ndef add(a, b, c):\n    c[1:] = a[1:] + b[1:]\n"
    by_option = "--call", "add(b, a, c)"
    for given, said, options in ((text, "add(a, b, c)", ()), (text.partition("\n")[2], "add(b, a, c)", by_option)):
        answer = judge(tmp_path, "mine.py", given, "--backend", "numpy", *options, kernel="vecadd")
        assert answer.code == 1, answer.run
        assert re.search(rf": nan where .*; or its call is not right: {re.escape(said)}$", answer.failing["reason"])


@OF_JUDGE
@pytest.mark.numpy
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("def mine(a, b)", r"error: SyntaxError: .*\(mine\.py, line 2\)$"),
        ("def mine(a, b): raise ValueError('oh')", r"error: ValueError: oh \(mine\.py, line 2\)$"),
    ],
)
def test_an_error_has_its_place_in_the_authors_file(line: str, reason: str, tmp_path: Path) -> None:
    answer = judge(
        tmp_path, "mine.py", f"# py-backends: c = mine(a, b)\n{line}\n", "--backend", "numpy", kernel="vecadd"
    )
    assert answer.code == 1, answer.run
    assert re.search(reason, answer.failing["reason"])


@OF_JUDGE
@pytest.mark.numpy
def test_what_fails_in_few_cases_is_called_as_it_should_be(tmp_path: Path) -> None:
    """Where NaN is no element that nobody wrote."""
    text = (
        "# py-backends: add(a, b, c)\ndef add(a, b, c):\n    c[...] = a + b\n    if a.size == 5: c[0] = float('nan')\n"
    )
    answer = judge(tmp_path, "mine.py", text, "--backend", "numpy", kernel="vecadd")
    assert answer.code == 1, answer.run
    assert "nan where" in answer.failing["reason"]
    assert "its call" not in answer.failing["reason"]


CRASH = "crashed: the worker was ended by SIGSEGV during 'run'"


@pytest.mark.parametrize(
    ("reason", "hinted"),
    [
        ("1 of 2 elements are wrong, the first at [0]: nan where 1 is right", True),
        ("it wrote before the beginning and past the end of its output", True),
        (CRASH, True),
        ("1 of 2 elements are wrong, the first at [0]: 1 where nan is right", False),
        ("timeout: no answer to 'run' within 30 s", False),
    ],
)
def test_what_a_wrong_call_may_do_shows_the_call(reason: str, hinted: bool) -> None:
    said = "f(a, b, c), grid 1, block 1"
    hint = f"; or its call is not right: {said}" if hinted else ""
    assert for_an_author(reason, f"{said}\n", emulated=True) == reason + hint
    assert for_an_author(reason, None, emulated=True) == reason


def test_a_compiler_that_crashes_asks_nobody_for_a_report() -> None:
    asked = "; it last wrote: PLEASE submit a bug report to https://software.intel.com and include the backtrace."
    for emulated, whose in ((True, "emulation's"), (False, "device's")):
        said = for_an_author(CRASH + asked, None, emulated=emulated)
        assert said == f"{CRASH}; the {whose} compiler crashed: the launch may not fit the kernel"


SUM = """\
// py-backends: c = total(n, a, b)
{order}
float total(int n, const float* x, const float* y) {{
  float sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (int i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}}
"""


@OF_JUDGE
@pytest.mark.openmp
def test_a_single_number_may_be_returned_and_summed_in_any_order(tmp_path: Path) -> None:
    """Threads end in another order each time. Who does not say so claims that the bits are the same."""
    options = "--backend", "openmp", "--threads", "4"
    answer = judge(tmp_path, "total.cpp", SUM.format(order="// Order: any, as threads end"), *options, kernel="dot")
    assert answer.code == 0, answer.run


@OF_JUDGE
@pytest.mark.cuda
def test_the_example_of_the_page_is_right() -> None:
    run = run_command("judge", "matmul", CLONE / "examples" / "own_code" / "sgemm.cu")
    assert (run.returncode, run.stderr) == (0, "")
    assert "right: " in run.stdout


@pytest.fixture
def judging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judging:
    """Of a source of which every case of the suite holds, and which `compare` has timed."""
    tried = Outcome(["float32"], cases=5, kinds={"shapes"})
    monkeypatch.setattr(trying, "tried", lambda *_, **__: tried)
    file = made(tmp_path, {"mine.py": ""}) / "mine.py"
    text = registry.kernel_texts("matmul", "numpy")["lecture"]
    return Judging(Given("matmul", file, "numpy"), Added(text, True), None, None, {}, checked_settings(), None)


def timed(monkeypatch: pytest.MonkeyPatch, *rows: Row, interrupted: bool = False) -> None:
    """Let a comparison have these rows."""
    report = Report("", "", {}, {}, list(rows), interrupted=interrupted)
    monkeypatch.setattr(compare, "run", lambda *_: report)


def row_at(size: int, status: str = "ok", **more: Any) -> Row:
    return Row("matmul", "numpy", "cpu", "lecture", "float32", shape(size), status, **more)


def shape(size: int) -> dict[str, int | float]:
    return dict.fromkeys(("m", "n", "k"), size)


def test_an_interrupted_run_does_not_say_that_the_file_is_right(
    judging: Judging, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its timed shape was not checked. What had failed before is wrong all the same."""
    timed(monkeypatch, row_at(8), interrupted=True)
    report = judging.run(30.0, None)
    found = report.judgement
    assert found is not None
    assert (found.right, found.failing, report.exit_code()) == (False, None, 130)
    said = list(table.lines(report, found))
    assert said[0].startswith("interrupted: ")
    assert "not checked" in said[1]
    timed(monkeypatch, row_at(8, "mismatch"), interrupted=True)
    wrong = judging.run(30.0, None).judgement
    assert wrong is not None
    assert wrong.failing is not None
    assert not wrong.right


def test_each_timed_shape_counts(judging: Judging, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is doubted has the status of its fault."""
    asked = []

    def doubt(*what: Any) -> doubts.Doubt | None:
        asked.append(what[3])
        return doubts.Doubt("impossible", "its clock is wrong", what[3]) if what[3][0] == 9 else None

    monkeypatch.setattr(doubts, "doubt", doubt)
    timed(monkeypatch, row_at(8), row_at(9))
    report = judging.run(30.0, None)
    assert asked == [(8, 8, 8), (9, 9, 9)]
    assert [row.status for row in report.rows] == ["ok", "impossible"]
    assert report.judgement is not None
    assert report.judgement.failing is not None
    assert (report.judgement.right, report.judgement.failing.sizes) == (False, [9, 9, 9])
    first, second, *_ = table.lines(report, report.judgement)
    assert first.endswith("5 cases of 1 kinds in float32 hold, but its time is not to be believed")
    assert second.startswith("not to be believed: compare at m=9 n=9 k=9, float32")


SHORTENED = {"requested": shape(90), "estimated_seconds": 0.1}


@pytest.mark.parametrize(
    ("row", "shapes", "remark"),
    [
        (row_at(9, **SHORTENED), (9, 90), None),
        (row_at(9, "emulated", **SHORTENED), (None, 90), None),
        (row_at(90, "skipped", reason="no time", estimated_seconds=0.1), (None, 90), None),
        (row_at(90, "skipped", reason="no memory"), (None, None), "no memory"),
        (row_at(9, **SHORTENED | {"estimated_seconds": 10}), (9, 9), "about 10 s; give a longer --patience"),
        (row_at(9, **SHORTENED | {"requested": shape(10**7)}), (9, 9), "GB"),
        (row_at(9, note="whose right answer would take an hour", **SHORTENED), (9, 9), "right answer"),
        (row_at(90, estimated_seconds=10), (90, 90), None),
    ],
)
def test_the_shape_that_was_asked_for_is_tried_unless_it_is_said(
    row: Row,
    shapes: tuple[int | None, int | None],
    remark: str | None,
    judging: Judging,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once, whatever the comparison had time for."""
    tried: list[Any] = []
    monkeypatch.setattr(doubts, "doubt", lambda *what: tried.extend(what[3:5]))
    timed(monkeypatch, row)
    found = judging.run(30.0, None).judgement
    assert found is not None
    assert tried == [None if size is None else (size,) * 3 for size in shapes]
    assert [each.partition(": ")[0] for each in found.remarks] == (
        [f"not tried at {'x'.join(str(each) for each in row.asked.values())}"] if remark else []
    )
    assert (remark or "") in "".join(found.remarks)


def test_what_fails_where_the_row_was_shortened_has_the_shape_that_was_asked_for(
    judging: Judging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doubts, "doubt", lambda *what: doubts.Doubt("mismatch", "1 where 2 is right", what[4]))
    timed(monkeypatch, row_at(9, **SHORTENED))
    report = judging.run(30.0, None)
    assert report.judgement is not None
    first, second, *_ = table.lines(report, report.judgement)
    assert first.endswith("hold, but not that of the comparison")
    assert second.startswith("smallest failing case: compare at m=90 n=90 k=90, float32")
    assert (report.rows[0].status, report.rows[0].reason) == ("mismatch", "1 where 2 is right, at 90x90x90")


def test_a_time_above_the_ceiling_is_explained(judging: Judging, monkeypatch: pytest.MonkeyPatch) -> None:
    timed(monkeypatch, row_at(9, "impossible", reason=f"{SEEMS_TO_TAKE} 1 s"))
    found = judging.run(30.0, None).judgement
    assert found is not None
    assert found.failing is not None
    assert found.failing.reason.endswith("it may keep results, or leave work for after the call")


def test_a_device_that_lacks_what_a_shape_needs_accuses_nobody(
    judging: Judging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doubts, "doubt", lambda *what: doubts.Doubt("skipped", "too little memory", what[4]))
    timed(monkeypatch, row_at(9, **SHORTENED))
    found = judging.run(30.0, None).judgement
    assert found is not None
    assert (found.right, found.remarks) == (True, ["not tried at 90x90x90: too little memory"])
