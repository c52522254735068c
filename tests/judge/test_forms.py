"""How files are written elsewhere: which function is meant, in which number formats, and what of it a device has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from judged import OF_JUDGE, judge, refused
from test_judge import BRIEFLY, SGEMM
from written_files import made

from py_backends import registry
from py_backends.backend import cuda
from py_backends.commands.judge import call, casts, wrappers
from py_backends.commands.judge.host_code import of_device
from py_backends.commands.judge.source import Given, is_in_our_form
from py_backends.errors import WrongRequest

pytestmark = pytest.mark.stamped

MATMUL = registry.problem("matmul")
BOTH = ["float32", "float64"]
BODY = """ {
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      c[i * n + j] = 0;
      for (int p = 0; p < k; p++) c[i * n + j] += a[i * k + p] * b[p * n + j];
    }
}
"""


@pytest.mark.parametrize(
    ("text", "said", "taken"),
    [
        ("void mm(const float a[], const float b[], float c[], int m, int n, int k) {", "mm", ["float32"]),
        ("void mm(const double* a /* (m x k) */, const double* b, double* c, int, int, int) {", "mm", ["float64"]),
        (
            "void mm(float* a, // a double, or not)\n float* b, float* c, int, int, int) {",
            "mm",
            ["float32"],
        ),
        ("void mm(float4* a, float4* b, float4* c, int m, int n, int k) {", "mm", ["float32"]),
        ("template <typename T> void mm(T* a, T* b, T* c, int m, int n, int k) {", "mm", BOTH),
        ("template <typename T> void mm(T* a, T* b, T* c, int m, int n, int k) {", "mm<double>", ["float64"]),
        ("template <typename T> void mm(T* a, T* b, T* c, int m, int n, int k) {", "mm<T>", BOTH),
        ("template <int N> void mm(float* a, float* b, float* c, int m, int n, int k) {", "mm<16>", ["float32"]),
        ("// void mm(double* a) {\nvoid mm(float* a, float* b, float* c, int, int, int) {", "mm", ["float32"]),
        ("void mm(double* a) {}\nvoid mm(float* a, float* b, float* c, int, int, int) {", "mm", ["float32"]),
        (
            """void mm(double* a, double* b, double* c, int, int, int) {}
void mm(float* a, float* b, float* c, int, int, int) {""",
            "mm",
            BOTH,
        ),
        ("typedef float real;\nvoid mm(real* a, real* b, real* c, int m, int n, int k) {", "mm", BOTH),
        ("void mm(float* a, float* b, float* c, int m, int n, int k) noexcept {", "at::mm", ["float32"]),
    ],
)
def test_the_formats_of_a_function_are_those_of_its_types(text: str, said: str, taken: list[str]) -> None:
    assert wrappers.formats(call.parse(f"{said}(a, b, c, m, n, k)", MATMUL), text, MATMUL) == taken


@pytest.mark.parametrize("kind", ["half", "__half2", "__nv_bfloat16", "_Float16", "cuComplex", "std::complex<float>"])
def test_a_type_that_is_no_format_is_named(kind: str) -> None:
    text = f"void mm(const {kind}* a, const {kind}* b, float* c, int m, int n, int k) {{"
    with pytest.raises(WrongRequest, match=kind.removeprefix("std::").partition("<")[0]):
        wrappers.formats(call.parse("mm(a, b, c, m, n, k)", MATMUL), text, MATMUL)


@OF_JUDGE
@pytest.mark.cpp
@pytest.mark.parametrize(
    "text",
    [
        "typedef float real;\nvoid mm(const real* a, const real* b, real* c, int m, int n, int k)",
        "template <typename T> void mm(const T a[], const T b[], T c[], int m, int n, int k)",
    ],
)
def test_a_format_in_which_a_file_does_not_compile_is_left_out(text: str, tmp_path: Path) -> None:
    answer = judge(
        tmp_path, "mm.cpp", f"{text}{BODY}", "--backend", "cpp", *BRIEFLY, "--call", "mm(a, b, c, m, n, k)", dtype=None
    )
    assert (answer.code, answer.judgement["right"]) == (0, True), answer.run
    assert answer.judgement["dtypes"] == (["float32"] if "real" in text else BOTH)
    assert ["float64" in each for each in answer.judgement["remarks"]] == ([True] if "real" in text else [])


@pytest.mark.parametrize(
    ("name", "text", "ours"),
    [
        ("x.cpp", "template <typename T>\nstatic void matmul(T* A, T* B, T* C, long M, long N, long K) {}", True),
        ("x.cpp", "static void matmul(float* a, float* b, float* c, long m, long n, long k) {}", False),
        ("x.cpp", "template <typename T> void matmul(int m, int n, int k, T* a, T* b, T* c) {}", False),
        ("x.cpp", "template <int N> struct S {};\nvoid matmul(T* a, T* b, T* c, int m, int n, int k) {}", False),
        ("x.py", "def matmul(a, b, c, m, n, k): pass", True),
        ("x.py", "def matmul(a, b, result, m, n, k): pass", True),
        ("x.py", "def matmul(m, n, k, a, b, c): pass", False),
    ],
)  # fmt: skip
def test_our_form_has_our_order_and_in_cpp_a_template(name: str, text: str, ours: bool) -> None:
    given = Given("matmul", Path(name), "openmp" if name.endswith(".cpp") else "numpy")
    assert is_in_our_form(given, text, MATMUL) == ours


def test_every_source_here_is_in_our_form() -> None:
    for kernel in ("matmul", "heat"):
        for backend in registry.backend_names():
            for text in registry.kernel_texts(kernel, backend).values():
                assert is_in_our_form(Given(kernel, text.path, backend), text.text, text.problem), text.path


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("x.cpp", f"void matmul(float* a, float* b, float* c, int m, int n, int k){BODY}", "matmul(a, b, c"),
        ("x.py", "def matmul(m, n, k, a, b, c):\n    pass\n", "matmul(m?, n?, k?, a, b, c)"),
        ("x.cpp", "// py-backends: gemm(a, b, c, m, n, k)\nvoid sgemm_fast(float* a) {}\n", "no function gemm"),
        ("x.cpp", "// py-backends: sgem(a, b, c, m, n, k)\nvoid sgemm(float* a) {}\n", "sgem: did you mean sgemm?"),
        ("x.cpp", "// py-backends: gemm(a, b, c, m, n, k)\n// gemm(a)\n", "no function gemm"),
        ("x.c", "", "__restrict__"),
        (
            "x.cu",
            """// py-backends: f(a, b, c), work items n x m, in groups of 8 x 8
__global__ void f(float* a, float* b, float* c) { extern __shared__ float tile[]; }
""",
            "shared memory",
        ),
    ],
)  # fmt: skip
def test_a_file_that_is_in_no_known_form_is_refused(name: str, text: str, words: str, tmp_path: Path) -> None:
    file = made(tmp_path, {name: text}) / name
    backend = {".cpp": ["--backend", "cpp"], ".py": ["--backend", "numpy"]}.get(file.suffix, [])
    assert words in refused("matmul", file, *backend)


@pytest.mark.parametrize("said", ["f(a=0, b, c)", "f(a, b, c=1)", "f(a, b, c=0.5f)"])
def test_an_array_begins_as_zeros_or_as_nothing_that_can_be_said(said: str) -> None:
    with pytest.raises(WrongRequest, match="c=0"):
        call.parse(said, MATMUL)


def test_zeros_may_be_written_as_any_number_is() -> None:
    assert call.parse("f(a, b, c=0.0f)", MATMUL).cleared == ("c",)


@pytest.mark.parametrize(
    ("kernel", "parameters", "said", "called"),
    [
        ("nbody", "const float3* p, float* w, float3* at, float3* f, int m, int n", "position, mass, at, c, m, n",
         "(float3*)position, mass, (float3*)at, (float3*)c, m, n"),
        ("nbody", "int m, const double (*p)[3], double* w, double (*at)[3], double (*f)[3]", "m, position, mass, at, c",
         "m, (const double (*)[3])position, mass, (double (*)[3])at, (double (*)[3])c"),
        ("dot", "const float* x, const float* y, int n, float& sum", "a, b, n, c", "a, b, n, *c"),
        ("dot", "const T* x, const T *y, T &sum, const int& n", "a, b, c, n", "a, b, *c, n"),
        ("dot", "float* x, float* y, float* __restrict__ sum", "a, b, c", "a, b, c"),
        ("dot", "const auto& x, const auto& y, auto& sum", "a, b, c", "a, b, c"),
    ],
)  # fmt: skip
def test_arrays_have_the_types_that_a_function_takes(kernel: str, parameters: str, said: str, called: str) -> None:
    """A pointer to elements was handed on, which does not compile. It counted as wrong."""
    problem, text = registry.problem(kernel), f"void f({parameters}) {{\n"
    found = casts.with_casts(call.parse(f"f({said})", problem), text, problem, of_cpp=False)
    assert ", ".join(found.arguments) == called


def test_a_pointer_may_be_referred_to_by_any_type() -> None:
    """As `x[i]` it is the array. What a template points at is an element."""
    problem = registry.problem("dot")
    head = "template <class In, class T>\n"
    for parameters, called in (("In& x, In& y, T* c", "a, b, c"), ("In& x, const T* y, T& c", "a, b, *c")):
        text = f"{head}void f({parameters}) {{\n"
        found = casts.with_casts(call.parse("f(a, b, c)", problem), text, problem, of_cpp=True)
        assert ", ".join(found.arguments) == called


def test_vectors_that_no_address_of_an_element_fits_are_refused(tmp_path: Path) -> None:
    """An array may begin at any element. Vectors of four need addresses that are multiples of 16 bytes."""
    text = """// py-backends: add4(a, b, c, n), grid ceil(n / 256), block 64
__global__ void add4(const float4* a, const float4* b, float4* c, int n) {}
"""
    assert "add4 takes float4*, and arrays begin at any element" in refused(
        "vecadd", made(tmp_path, {"x.cu": text}) / "x.cu"
    )
    problem = registry.problem("vecadd")
    for parameters, before in (
        ("__global float3* a, __global float3* b, __global float3* c", ""),
        ("const float4* a, const float4* b, float4* c", "struct alignas(16) float4 { float x, y, z, w; };\n"),
    ):
        text = f"{before}void f({parameters}) {{"
        with pytest.raises(WrongRequest, match="arrays begin at any element"):
            casts.with_casts(call.parse("f(a, b, c)", problem), text, problem, of_cpp=bool(before))
    with pytest.raises(WrongRequest, match="takes __m128"):
        casts.with_casts(
            call.parse("f(a, b, c)", problem), "void f(__m128* a, __m128* b, __m128* c) {", problem, of_cpp=True
        )


def guards(kernel: str, said: str) -> list[str]:
    """The conditions under which a wrapper does not call its function."""
    wrapped = wrappers.in_opencl(call.parse(said, registry.problem(kernel)), "x.cl", "", registry.problem(kernel))
    return re.findall(r"if \((\w+) == 0\) return;", wrapped)


def test_what_host_code_would_not_launch_is_not_called_where_its_result_is_empty() -> None:
    """A result that has elements has to be written all the same, such as a sum of nothing."""
    assert guards("vecadd", "f(a, b, c, n), grid ceil(n / 256), block 256") == ["n"]
    assert guards("vecadd", "f(a, b, c, n), grid 64, block 256") == []
    assert guards("matmul", "f(a, b, c), grid ceil(n / 8) * m, block 8") == ["m", "n"]
    assert guards("matmul", "f(a, b, c), grid ceil(n / 8) x k, block 8 x 1") == ["n"]
    assert guards("matmul", "f(a, b, c), work items n + 1 x m, in groups of 8 x 8") == ["m"]
    assert guards("dot", "f(a, b, c=0, n), grid ceil(n / 256), block 256") == []


@OF_JUDGE
@pytest.mark.cuda
def test_a_kernel_without_a_guard_is_right_of_nothing(tmp_path: Path) -> None:
    """Its last threads compute the last element again. Where there is none, nobody would launch it."""
    text = """// py-backends: add(a, b, c, n), grid ceil(n / 256), block 256
__global__ void add(const float* a, const float* b, float* c, int n) {
  const int i = min((int)(blockIdx.x * blockDim.x + threadIdx.x), n - 1);
  c[i] = a[i] + b[i];
}
"""
    answer = judge(tmp_path, "x.cu", text, "--shape", "vecadd=1000", kernel="vecadd")
    assert (answer.code, answer.judgement["right"]) == (0, True), answer.run


@pytest.mark.parametrize(
    "name",
    ["sqrtf", "rsqrtf", "expf", "__expf", "make_float3", "make_int4", "dim3", "__syncwarp", "warpSize", "__shfl_sync"],
)
def test_what_people_use_of_cuda_is_in_its_emulation(name: str) -> None:
    """A source with one of these could not be checked. The gallery runs them, which takes longer."""
    folder = Path(cuda.__file__).parent
    bare = "".join((folder / each).read_text() for each in cuda.PRELUDE)
    of_both = {"expf": "exp", "make_float3": "float3", "make_int4": "int4"}
    assert re.search(rf"\b{of_both.get(name, name)}\b", bare)


def test_what_nvcc_takes_from_headers_of_the_host_stands_before_a_kernel() -> None:
    """The compiler of kernels alone knows no INFINITY, on a GPU as well."""
    said = call.parse("f(a, b, c, n), grid ceil(n / 256), block 256", registry.problem("vecadd"))
    assert "#define INFINITY " in wrappers.in_cuda(said, "x.cu", "", registry.problem("vecadd")).partition("#line")[0]


KERNEL = "__global__ void k(float* a) { a[threadIdx.x] = 1; }\n"
OF_THE_HOST = [
    "void randomize(float* x) { *x = rand() / 3.0f; }",
    "float get_sec() { struct timeval time; gettimeofday(&time, NULL); return time.tv_sec; }",
    "static inline bool same(const float* x, const float* y) noexcept { return *x == *y; }",
    "template <typename T> void fill(T* x) { *x = 1; }",
    "using namespace std;",
    "struct Timer { cudaEvent_t begin; };",
    "auto host() -> int { return 1; }",
]
OF_THE_DEVICE = [
    "__device__ float twice(float x) { return 2 * x; }",
    "template <typename T> __device__ __forceinline__ T twice(T x) { return x + x; }",
    "constexpr int ceil_of(int a, int b) { return (a + b - 1) / b; }",
    "#define DEV __device__ inline\nDEV float twice(float x) { return 2 * x; }",
    "struct __align__(16) Four { float x[4]; };",
    "enum Size { TILE = 16 };",
    "__constant__ float table[] = {1, 2};",
    "const int sizes[] = {1, 2};",
    "using real = float;",
]


SCOPES = ["{}", "namespace {{\n{}\n}}", 'extern "C" {{\n{}\n}}', "namespace a {{ namespace b {{ {} }} }}"]


@pytest.mark.parametrize("within", SCOPES)
def test_functions_of_the_host_are_left_out_wherever_they_stand(within: str) -> None:
    text = within.format("\n".join([*OF_THE_HOST, *OF_THE_DEVICE, KERNEL]))
    wanted = within.format("\n".join([*OF_THE_DEVICE, KERNEL.replace("__global__", "__device__")]))
    found = of_device(text)
    assert found.count("\n") == text.count("\n")
    assert "".join(re.findall(r"[^;\s]", found)) == "".join(re.findall(r"[^;\s]", wanted))


@OF_JUDGE
@pytest.mark.cuda
def test_a_kernel_within_a_namespace_beside_its_launcher_is_right(tmp_path: Path) -> None:
    """And a header that is called as the kernel is keeps its name."""
    made(tmp_path, {"matmul.h": "__device__ inline float times(float x, float y) { return x * y; }\n"})
    text = SGEMM.replace("__global__ void sgemm_naive", "namespace of {\n__global__ void matmul").replace(
        "A[row * K + p] * B[p * N + column]", "times(A[row * K + p], B[p * N + column])"
    )
    host = "float drawn() { return rand(); }\nvoid run(float* a) { matmul<<<1, 1>>>(1, 1, 1, 1, a, a, 0, a); }\n}\n"
    said = "of::matmul(m, n, k, alpha=1, a, b, beta=0, c), grid ceil(m / 32) x ceil(n / 32), block 32 x 32"
    answer = judge(tmp_path, "x.cu", f'#include "matmul.h"\n{text}{host}', *BRIEFLY, "--call", said)
    assert (answer.code, answer.judgement["right"]) == (0, True), answer.run
    plain = f'#include "matmul.h"\n{text}{host}'.replace("namespace of {\n", "").removesuffix("}\n")
    answer = judge(tmp_path, "x.cu", plain, *BRIEFLY, "--call", said.removeprefix("of::"))
    assert (answer.code, answer.judgement["right"]) == (0, True), answer.run
