"""A file that does not say how it is called gets a line to paste, in which all that is a guess is marked as one."""

from __future__ import annotations

from pathlib import Path

import pytest
from judged import refused
from test_judge import SGEMM
from written_files import made

from py_backends import registry
from py_backends.commands.judge import call, proposal, source
from py_backends.errors import WrongRequest

pytestmark = pytest.mark.stamped

GRID = ", grid ceil(n / 16) x ceil(m / 16), block 16 x 16?"
ADD = "__global__ void __launch_bounds__(256) add(const T* x, const T* y, T* out, size_t count) {}"


def line(text: str, kernel: str, backend: str) -> str:
    """The proposed line, without what to write in place of its guesses."""
    mark = "#" if text.startswith("def") else "//"
    said = proposal.to_do(text, registry.problem(kernel), backend, mark)
    assert said.startswith(f"put a line such as  {mark} py-backends: "), said
    return said.partition("py-backends: ")[2].partition("; ")[0]


@pytest.mark.parametrize(
    ("text", "proposed"),
    [
        ("mm(float *a, float *b, float *c, int m, int n, int k)", "mm(a, b, c, m?, n?, k?)"),
        ("mm(float *P, const float *M, const float *N, int rows, int k)", "mm(c, a, b, rows?, k?)"),
        ("mm(float *a, const float *b, const float *c, int m)", "mm(c, a, b, m?)"),
        ("mm(const float *B, float const *A, float *const out)", "mm(b, a, c)"),
        ("mm(float *A, float *B, float *out)", "mm(a, b, c)"),
        ("mm(float *x, float *y, float *z, float m)", "mm(x?, y?, z?, m?)"),
        ("mm(float* out, const float* left, int M, const float* right, float alpha)", "mm(c, a, m?, b, alpha=1)"),
    ],
)
def test_arrays_are_told_by_names_and_constness_and_never_by_sizes(text: str, proposed: str) -> None:
    assert line(f"__global__ void {text} {{}}", "matmul", "cuda") == proposed + GRID


def test_a_file_is_refused_with_a_line_that_is_refused_until_its_guesses_are_gone(tmp_path: Path) -> None:
    """Its sizes and its launch may be others, and then a right kernel would be wrong."""
    file = made(tmp_path, {"sgemm.cu": SGEMM}) / "sgemm.cu"
    said = refused("matmul", file).split(" (try")[0]
    problem, found = registry.problem("matmul"), said.partition("// py-backends: ")[2].partition("; ")[0]
    assert "; what has a ? is a guess: write one of m, n and k, or a constant, for each name, and the launch" in said
    with pytest.raises(WrongRequest, match=r"has 'm\?': write one of"):
        call.parse(found, problem)
    with pytest.raises(WrongRequest, match="the launch is a guess"):
        call.parse(found[:-1].replace("?", "") + "?", problem)
    parsed = call.parse(found.replace("?", ""), problem)
    assert (parsed.function, parsed.arguments) == ("sgemm_naive", ("m", "n", "k", "1", "a", "b", "0", "c"))
    launch = "ceil(n / 16) * 16 x ceil(m / 16) * 16, in groups of 16 x 16"
    assert (parsed.work_items, parsed.cleared) == (launch, ("c",))


def test_work_items_are_a_guess_too() -> None:
    text = "__kernel void t(__global const float* src, __global float* dst, const int width, const int height) {}"
    assert line(text, "transpose", "opencl") == "t(a, c, width?, height?), work items n x m, in groups of 16 x 16?"


def test_the_only_size_is_no_guess() -> None:
    """Beside another number, only its name tells it."""
    launch = ", grid ceil(n / 256), block 256?"
    for parameters, proposed in (
        ("int count", "n"),
        ("float scale, int count", "scale?, n"),
        ("int n, int stride", "n, stride?"),
        ("int count, int stride", "count?, stride?"),
    ):
        text = f"__global__ void add(float* c, float* a, float* b, {parameters}) {{}}"
        assert line(text, "vecadd", "cuda") == f"add(c, a, b, {proposed}){launch}"


@pytest.mark.parametrize(
    ("kernel", "text", "proposed"),
    [
        ("transpose", "def flip(m):\n    return m.T\n", "c = flip(a)"),
        ("matmul", "def mm(x, y):\n    return x @ y\n", "c = mm(a, b)"),
        ("matmul", "def mm(b, a, eps=0):\n    return a @ b\n", "c = mm(b, a)"),
        ("matmul", "def mm(a, b, m, n, k):\n    return a @ b\n", "c = mm(a, b, m?, n?, k?)"),
        ("matmul", "def mm(m, n, k, x, y):\n    return x @ y\n", "c = mm(m?, n?, k?, a, b)"),
        ("matmul", "def mm(a, b, c):\n    c[...] = a @ b\n    return c\n", "mm(a, b, c)"),
        ("matmul", "def mm(x, y, out):\n    return np.matmul(x, y, out)\n", "mm(x?, y?, out?)"),
        ("transpose", "def flip(a, c):\n    c[...] = a.T\n", "flip(a, c)"),
    ],
)
def test_a_function_in_python_may_return_its_result(kernel: str, text: str, proposed: str) -> None:
    assert line(text, kernel, "numpy") == proposed


@pytest.mark.parametrize(
    ("template", "proposed"),
    [
        ("typename T, int N", "add<float, 256?>"),
        ("int N, typename T", "add<256?>"),
        ("typename T, bool checked, int N = 4", "add<float, true?>"),
        ("typename T, int N = 4", "add"),
        ("class T", "add"),
        ("typename T, typename Sum", "add<float, float>"),
    ],
)
def test_template_arguments_that_no_compiler_deduces_are_proposed_and_asked_for(template: str, proposed: str) -> None:
    """Without them, a right kernel would not compile."""
    text = f"template <{template}>\n{ADD}"
    assert line(text, "vecadd", "cuda").partition("(")[0] == proposed
    lacking = call.undeduced(call.Call("add", ("a", "b", "c", "n")), text)
    assert lacking is None if proposed == "add" else f"write {proposed}(...)" in (lacking or "")
    full = "add<float, 2, 3>"
    assert call.undeduced(call.Call(full, ("a", "b", "c", "n")), text) is None


@pytest.mark.parametrize(
    "text",
    [
        f"template <typename... T>\n{ADD}",
        f"template <typename T, typename = std::enable_if_t<true>, int N>\n{ADD}",
        f"template <typename T, int N>\n{ADD}\nvoid add(float* a, float* b) {{}}",
        f"template <int N> struct Tile {{}};\n{ADD}",
    ],
)
def test_templates_that_only_a_compiler_knows_are_left_to_it(text: str) -> None:
    assert call.undeduced(call.Call("add", ("a", "b", "c", "n")), text) is None


def test_a_call_without_template_arguments_is_no_wrong_source(tmp_path: Path) -> None:
    file = made(tmp_path, {"add.cu": f"template <typename T, int N>\n{ADD}"}) / "add.cu"
    for template, told in (("", "add<float, 256?>"), ("<float>", "256?"), ("<float, 256?>", "in place of each guess")):
        said = f"add{template}(a, b, c, n), grid 64, block 256"
        with pytest.raises(WrongRequest) as refusal, source.added(source.checked("vecadd", file, None, said)):
            pass
        assert told in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "backend", "to_do"),
    [
        (
            "void step(const float* in, float* out, int w, int h) {}",
            "cpp",
            "calls step, and a line such as  // py-back",
        ),
        (
            "def step(u):\n    return u\n",
            "numpy",
            "calls step, and a line such as  # py-backends: NAME(u, c, m, n, steps)",
        ),
        ("__global__ void step(const float* u, float* c, int m, int n) {}", "cuda", "docs/write-a-kernel-of-steps.md"),
    ],
)
def test_a_number_that_a_function_does_not_take_is_named(text: str, backend: str, to_do: str) -> None:
    """No call of the function alone can be right."""
    said = proposal.to_do(text, registry.problem("heat"), backend, "#" if text.startswith("def") else "//")
    assert said.startswith("heat has the number steps, which step(")
    assert to_do in said


def test_a_number_of_another_name_is_asked_for() -> None:
    text = "void heat2(float* u, float* c, int w, int h, int iterations) {}"
    assert line(text, "heat", "cpp") == "heat2(u, c, w?, h?, iterations?)"
    assert "one of m, n and steps" in proposal.to_do(text, registry.problem("heat"), "cpp", "//")
