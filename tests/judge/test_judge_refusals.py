"""What cannot be judged is refused in one line, and what does not compile says so by the compiler's own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from judged import OF_JUDGE, judge, refused
from test_judge import IN_CPP, IN_OPENCL, ITS_CALL, SGEMM
from written_files import made

from py_backends import registry
from py_backends.commands.judge import call, nvrtc, proposal, source
from py_backends.commands.judge.host_code import of_device, with_device_headers, without_quotes
from py_backends.commands.judge.judging import in_their_lines
from py_backends.conformance.at_hand import has_device
from py_backends.contract import KernelText, Target
from py_backends.errors import WrongRequest

pytestmark = pytest.mark.stamped


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "mine.cpp"
    made.write_text(IN_CPP)
    return made


def test_what_is_unknown_is_named(file: Path) -> None:
    assert "matmul" in refused("matmull", file)
    assert "none.cpp" in refused("matmul", file.with_name("none.cpp"))
    assert ".cl, .cpp, .cu and .py" in refused("matmul", file.rename(file.with_suffix(".rs")))


def test_a_file_in_the_place_of_the_kernel_says_what_comes_first(file: Path) -> None:
    """Whether it is there or not. A folder without a kernel is none, and nobody asks `judge` for further sources."""
    assert f"the kernel comes first, as in judge matmul {file}" in " ".join(refused(file, "matmul").split())
    assert "mine.cu is a file: the kernel comes first" in refused("mine.cu", "matmul")
    for folder in (".", f"{file.parent}/"):
        with pytest.raises(WrongRequest, match=r"has no problem\.py: name one that is here, .* or vecadd; "):
            source.checked(folder, file, "openmp", None)


def test_a_broken_kernel_says_why(file: Path, tmp_path: Path) -> None:
    """It is not an unknown one."""
    folder = made(tmp_path / "axpy", {"problem.py": "import no_such_thing\n"})
    assert "no_such_thing" in refused(folder, file, "--backend", "openmp")


LACKING = {
    "numpy": ("mine.py", "import nosuchmodule\ndef add(a, b, c):\n    c[...] = a + b\n", ""),
    "openmp": ("mine.cpp", '#include "nosuchmodule"\nvoid add(float* a, float* b, float* c) {}\n', ""),
    "opencl": (
        "mine.cl",
        '#include "nosuchmodule"\nkernel void add(global float* a, global float* b, global float* c) {}\n',
        ", work items n, in groups of 1",
    ),
    "cuda": (
        "mine.cu",
        '#include "nosuchmodule"\n__global__ void add(float* a, float* b, float* c) {}\n',
        ", grid n, block 1",
    ),
}


@OF_JUDGE
@pytest.mark.parametrize("backend", [pytest.param(each, marks=getattr(pytest.mark, each)) for each in LACKING])
def test_what_needs_something_that_is_not_here_is_not_wrong(backend: str, tmp_path: Path) -> None:
    name, text, launch = LACKING[backend]
    file = made(tmp_path, {name: text}) / name
    said = refused("vecadd", file, "--backend", backend, "--call", f"add(a, b, c){launch}")
    assert "cannot be checked" in said
    assert "it needs nosuchmodule, which is not here" in said


def test_a_file_of_several_models_needs_its_name(file: Path) -> None:
    assert "--backend" in refused("matmul", file)
    assert ".cu" in refused("matmul", file, "--backend", "cuda")


def test_what_else_a_file_of_several_models_lacks_is_asked_at_once(tmp_path: Path) -> None:
    for text, asked in (
        ("void mm(int n, float* c, const float* left) {}", "; and put a line such as  // py-backends: mm(n?, c, a)"),
        ("// py-backends: mm(n, c, a)\nvoid mm(int n, float* c, const float* x) {}", None),
        ("template <typename T>\nvoid matmul(const T* a, const T* b, T* c, long m, long n, long k) {}", None),
    ):
        file = made(tmp_path, {"mine.cpp": text}) / "mine.cpp"
        with pytest.raises(WrongRequest, match="--backend") as refusal:
            source.checked("matmul", file, None, None)
        assert (asked or "") in str(refusal.value)
        assert ("put a line" in str(refusal.value)) == (asked is not None)


DOT = "__global__ void dotf(float* c, const float* a, const float* b, int n) {}"
GUESSED = "; what has a ? is a guess: write the launch that the kernel needs"


def unclear(folder: Path, said: str) -> str:
    """What is unclear where that kernel is called so."""
    file = made(folder, {"mine.cu": DOT}) / "mine.cu"
    with pytest.raises(WrongRequest) as refusal, source.added(source.checked("dot", file, None, said)):
        pass
    return str(refusal.value)


@pytest.mark.parametrize(
    ("said", "launch"),
    [
        ("dotf(c, a, b, n)", f"grid ceil(n / 256), block 256?{GUESSED}"),
        ("dotf<<<1,256>>>(c, a, b, n)", "grid 1, block 256"),
        ("dotf<<<dim3((n + 255) / 256), dim3(256)>>>(c, a, b, n)", f"grid ceil(n / 256), block 256?{GUESSED}"),
    ],
)
def test_a_call_without_its_launch_is_kept(said: str, launch: str, tmp_path: Path) -> None:
    assert unclear(tmp_path, said).endswith(f"add it as in  // py-backends: dotf(c, a, b, n), {launch}")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("dotf(a, b, c), grid 1, block 1", "the call gives 3 parameters, and dotf takes 4"),
        ("dotf<<<1, 1>>>(c, a, b, n), grid 1, block 1", "has a launch twice: write  // py-backends: dotf(c, a, b, n)"),
        ("dotf(c, a, b, N), grid 1, block 1", "dotf has 'N': write n"),
        ("dotf(c, a, b, n), grid min(64, ceil(n / 256)), block 256", "takes any number, such as grid 64"),
    ],
)
def test_a_call_that_does_not_fit_says_what_to_write(said: str, told: str, tmp_path: Path) -> None:
    assert told in unclear(tmp_path, said)


@pytest.mark.parametrize(
    "text",
    [
        "void f(const float* a, float b[], int n = 1) {}",
        "void f(PARAMETERS) {}",
        "template <typename... T>\nvoid f(T... all) {}",
        "void f(std::span<float, 3> a, int n) {}",
        "void f(int n) {}\nvoid f(const float *a, float *b) {}",
        "int g() { return f(1) - 1; }\nvoid f(float* a, float* b) {}",
    ],
)
def test_what_only_a_compiler_can_count_is_no_misfit(text: str) -> None:
    assert call.misfit(call.Call("f", ("a", "b")), text, "//") is None


def test_optional_parameters_in_python_may_be_left_out() -> None:
    for parameters in ("a, b, tile=3", "a, *more", "a: tuple[int, int], b", "a, b"):
        assert call.misfit(call.Call("f", ("a", "b")), f"def f({parameters}):\n", "#") is None
    assert call.misfit(call.Call("f", ("a", "b")), "def f(a, b, c):\n", "#")


@pytest.mark.parametrize(
    "said",
    [
        "sgemm(a, b",
        "sgemm(a, b, x)",
        "sgemm(a, b)",
        "a = sgemm(a, b, c)",
        "sgemm(a, b, c), grid many, block 3",
        "sgemm(a, b, c), block 3",
        "sgemm(a, b, c), grid n x m, block 64 x 64",
        "sgemm(a, b, c), grid ceil(nn / 16) x m, block 16 x 16",
        "sgemm(a, b, c), work items o x m, in groups of 16 x 16",
        "sgemm(a, b, c, k + 1)",
        "sgemm(a, a, b, c)",
    ],
)
def test_an_unclear_call_is_one_line(said: str, file: Path) -> None:
    assert refused("matmul", file, "--backend", "openmp", "--call", said)


@pytest.mark.parametrize(
    ("kernel", "said", "told"),
    [
        ("matmul", "f(a, a, b, c)", "f gets a more than once"),
        ("matmul", "f(a, b, c, c)", "f gets c more than once"),
        ("matmul", "f(a, b)", "f does not get c"),
        ("heat", "f(u, c, m, n)", "f does not get steps"),
        ("heat", "f(u, c, m, n, steps=4)", "f does not get steps"),
    ],
)
def test_arrays_are_given_once_and_numbers_are_not_left_out(kernel: str, said: str, told: str) -> None:
    with pytest.raises(WrongRequest, match=told):
        call.parse(said, registry.problem(kernel))


def test_a_constant_may_be_a_number_a_truth_value_or_a_string() -> None:
    """As the product of Triton's tutorial has an activation."""
    for constant in ("2", "-1.5e3f", "True", '""', "'relu'"):
        assert call.parse(f"f(a, b, c, x={constant})", registry.problem("matmul")).arguments[-1] == constant


def test_a_size_may_be_given_twice() -> None:
    """As BLAS has them: the distance of rows is a size, too."""
    said = "f(m, n, k, a, k, b, n, c, n)"
    assert call.parse(said, registry.problem("matmul")).arguments == ("m", "n", "k", "a", "k", "b", "n", "c", "n")


IN_PYTHON = '''\
# def mm(a): other's
"""
def mm(b): it's
"""
half = n // 2; pair = "#", 1
def mm(a, b, tile=n // 2, c=0): pass
'''


def test_a_quotient_in_python_is_no_comment() -> None:
    """Its own comments and strings hold no functions."""
    assert list(call.parameters(IN_PYTHON, "mm", mark="#")) == [("a", "b", "tile", "c")]
    assert "pair" in call.without_comments(IN_PYTHON, "#")
    assert "mm(a, b, tile?, c)" in proposal.to_do(IN_PYTHON, registry.problem("matmul"), "numpy", "#")


def test_other_misfits_are_one_line(file: Path) -> None:
    options = "matmul", file, "--backend", "openmp"
    assert "float32" in refused(*options, "--dtype", "float64")
    assert "vecadd" in refused(*options, "--shape", "vecadd=3")
    assert "nowhere" in refused(*options, "--target", "nowhere")
    assert "sycl" in refused("matmul", file, "--backend", "sycl")
    assert "other" in refused(*options, "--call", "other(a, b, c)")
    assert "number of gigabytes above 0, not '0'" in refused(*options, "--memory", "0")
    assert "number of seconds above 0, not 'x'" in refused(*options, "--patience", "x")


@pytest.mark.skipif(has_device("cublas"), reason="it is there")
def test_a_model_that_this_machine_lacks_says_why(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def matmul(a, b, c, m, n, k):\n    pass\n")
    assert "cublas" in refused("matmul", file, "--backend", "cublas")


@OF_JUDGE
@pytest.mark.parametrize(
    ("backend", "name", "text"),
    [
        pytest.param("cpp", "mine.cpp", IN_CPP.replace("+= A", "+= Q"), marks=pytest.mark.cpp),
        pytest.param(
            "cuda",
            "mine.cu",
            f"// py-backends: {ITS_CALL}\n{SGEMM.replace('+= A', '+= Q')}",
            marks=pytest.mark.cuda,
        ),
        pytest.param("opencl", "mine.cl", IN_OPENCL.replace("+= A", "+= Q"), marks=pytest.mark.opencl),
        pytest.param(
            "numpy",
            "mine.py",
            "from numpy import Q\ndef matmul(a, b, c, m, n, k):\n    pass\n",
            marks=pytest.mark.numpy,
        ),
    ],
)
def test_a_compilers_own_words_are_the_reason(backend: str, name: str, text: str, tmp_path: Path) -> None:
    answer = judge(tmp_path, name, text, "--backend", backend)
    assert (answer.code, answer.failing["kind"]) == (1, "prepare"), answer.run
    assert "Q" in answer.failing["reason"]


BEYOND_THE_EMULATION = """\
// py-backends: dot(a, b, c=0, n), grid 1, block 1
__global__ void dot(const float* a, const float* b, float* c, int n) {
  c[0] = __saturatef(a[0]);
}
"""


@OF_JUDGE
@pytest.mark.cuda
@pytest.mark.skipif(has_device("cuda"), reason="there is a GPU, which takes it")
class TestCudaThatIsNotEmulated:
    def test_is_not_wrong_where_its_own_compiler_takes_it(self, tmp_path: Path) -> None:
        file = tmp_path / "mine.cu"
        file.write_text(BEYOND_THE_EMULATION)
        said = refused("dot", file)
        assert "cannot be checked on emulated: it is valid CUDA" in said
        assert "mine.cu:3:10: error: use of undeclared identifier '__saturatef'" in said

    @pytest.mark.parametrize("header", ["<cuda_fp16.h>", '"cuda_fp16.h"'])
    def test_is_not_wrong_for_a_header_of_cudas(self, header: str, tmp_path: Path) -> None:
        """What its compiler says is known where that header is, and else what to install."""
        file = tmp_path / "mine.cu"
        half = BEYOND_THE_EMULATION.replace("__saturatef(a[0])", "__half2float(__float2half(a[0]))")
        file.write_text(f"#include {header}\n{half}")
        said = refused("dot", file)
        assert "it is valid CUDA" in said or "it includes <cuda_fp16.h>" in said

    def test_is_wrong_where_its_own_compiler_refuses_it(self, tmp_path: Path) -> None:
        """The place of the error is that in the file."""
        answer = judge(tmp_path, "mine.cu", BEYOND_THE_EMULATION.replace("__saturatef(a[0])", "Q"), kernel="dot")
        assert (answer.code, answer.failing["kind"]) == (1, "prepare"), answer.run
        assert "mine.cu:3:10: error: use of undeclared identifier 'Q'" in answer.failing["reason"]

    def test_has_errors_for_a_missing_header_that_are_none_of_its_own(self, tmp_path: Path) -> None:
        text = BEYOND_THE_EMULATION.replace("__saturatef(a[0])", "__half2float(Q)")
        answer = judge(tmp_path, "mine.cu", f"#include <cuda_fp16.h>\n{text}", kernel="dot")
        if answer.code == 1:  # else the header is missing, and nobody knows
            assert 'mine.cu(4): error: identifier "Q" is undefined' in answer.failing["reason"]


HALF = "#include <cuda_fp16.h>\n__global__ void dot(float* c) { c[0] = __half2float(__float2half(1)); }\n"


class TestCudasOwnCompiler:
    """It has no headers but those that are installed."""

    @pytest.fixture
    def ends(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], int]:
        pytest.importorskip("cuda.bindings.nvrtc")

        def ends(source: str) -> int:
            monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(source.encode())))
            return nvrtc.main(str(tmp_path))

        return ends

    def test_finds_them(self, ends: Callable[[str], int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "cuda_fp16.h").write_text("float __half2float(float); float __float2half(float);\n")
        monkeypatch.setattr(nvrtc, "_include_folders", lambda: [str(tmp_path)])
        assert ends(HALF) == nvrtc._COMPILES
        assert ends(HALF.replace("(1)", "(Q)")) == nvrtc._DOES_NOT

    def test_knows_nothing_without_them(self, ends: Callable[[str], int], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(nvrtc, "_include_folders", list)
        assert ends(HALF) == nvrtc._LACKS_HEADERS
        assert ends(HALF.replace("cuda_fp16.h", "tile.cuh")) == nvrtc._DOES_NOT


@pytest.mark.parametrize(
    ("code", "emulated", "told"),
    [
        (nvrtc._COMPILES, True, "valid CUDA"),
        (nvrtc._COMPILES, False, "it includes <cuda_fp16.h>"),
        (nvrtc._LACKS_HEADERS, True, "cuda-toolkit"),
        (nvrtc._IS_NOT_THERE, True, "nvrtc"),
        (nvrtc._DOES_NOT, True, None),
        (nvrtc._DOES_NOT, False, None),
    ],
)
def test_what_needs_a_header_of_cudas_says_what_to_do(
    code: int, emulated: bool, told: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lines are left out for the emulation, also in a file that the source includes."""
    monkeypatch.setattr(nvrtc, "_asked", lambda *_: (code, ""))
    for named, text in {"left_out": of_device(HALF), "in_a_header": '#include "own.cuh"\n'}.items():
        path = made(tmp_path / named, {"cuda.cu": text}) / "cuda.cu"
        path.with_name("own.cuh").write_bytes(f"// \xe9\n{HALF}".encode("latin-1"))
        source = KernelText(registry.problem("dot"), "judged", "cuda", path, None)
        said = nvrtc.beyond(source, Target("here", emulated=emulated), "float32", 9.0)
        assert said is None if told is None else told in (said or "")


def test_headers_of_cudas_may_stand_in_quotes_unless_they_are_the_authors(tmp_path: Path) -> None:
    """Visual Studio writes them so."""
    made(tmp_path, {"mma.h": ""})
    text = '#include "cuda_runtime.h"\n# include "cuda_fp16.h"\n#include "mma.h"\n#include "tile.cuh"\n'
    found = without_quotes(text, tmp_path)
    assert found == '#include <cuda_runtime.h>\n# include <cuda_fp16.h>\n#include "mma.h"\n#include "tile.cuh"\n'
    assert with_device_headers(of_device(found)).splitlines()[1] == "# include <cuda_fp16.h>"
    assert "\n#include <cuda_runtime.h>" not in with_device_headers(of_device(f"\n{found}"))


def test_without_cudas_own_compiler_nobody_knows_and_a_hint_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    assert nvrtc.main(".", "dot<float>") == 3
    text, emulated = registry.kernel_texts("dot", "cuda")["lecture"], Target("emulated", emulated=True)
    monkeypatch.setattr(nvrtc, "_is_there", lambda: False)
    assert "cuda-toolkit[nvrtc" in nvrtc.hint(text, emulated, "float32", 9.0)
    monkeypatch.setattr(nvrtc, "_is_there", lambda: True)
    assert nvrtc.hint(text, emulated, "float32", 9.0) == ""


def test_a_source_whose_head_is_wrong_is_not_beyond_the_emulation(tmp_path: Path) -> None:
    path = made(tmp_path, {"cuda.cu": "// dot: no launch\n"}) / "cuda.cu"
    text = KernelText(registry.problem("dot"), "judged", "cuda", path, None)
    assert nvrtc.beyond(text, Target("emulated", emulated=True), "float32", 9.0) is None


def test_places_of_errors_in_cpp_have_the_files_own_name() -> None:
    text = registry.kernel_texts("dot", "openmp")["lecture"]
    said = f"{text.path.parent}/their_mine.cpp:4:45: error"
    assert in_their_lines(said, text, Path("some/mine.cpp")) == "mine.cpp:4:45: error"
    copied = f"{text.path.parent}/openmp.cpp:4:45: error"  # what is in this project's form
    assert in_their_lines(copied, text, Path("some/mine.cpp")) == "mine.cpp:4:45: error"


def test_lines_of_a_source_stay_where_they_are() -> None:
    text = '__device__ int f() {}\nvoid g() {\n  h<<<1, 1>>>("}");\n}\n__global__ void h() {}\nint main() {}\n'
    found = of_device(text)
    assert found.count("\n") == text.count("\n")
    assert "__device__ int f()" in found
    assert found.splitlines()[4] == "__device__ void h() {}"
    assert "main" not in found


@pytest.mark.skipif(has_device("cuda"), reason="there is a GPU, which has all of its warps")
def test_warps_that_the_emulation_has_not_are_no_fault_of_a_source(tmp_path: Path) -> None:
    """CUDA's go on in the next row of a block. There each vote missed half of a warp."""
    text = """// py-backends: add(a, b, c, n), grid ceil(n / 64) x 1, block 16 x 4
__global__ void add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * 64 + threadIdx.y * 16 + threadIdx.x;
  bool all = __all_sync(0xffffffff, 1);
  if (i < n) c[i] = all ? a[i] + b[i] : 0;
}
"""
    file = made(tmp_path, {"x.cu": text}) / "x.cu"
    assert "has no warps of several rows" in refused("vecadd", file, "--dtype", "float32")
