"""How functions in Python are called: with arrays as long as the case, in their model's own way of clearing them."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from judged import refused
from written_files import made

from py_backends import registry
from py_backends.commands.judge import call, wrappers_in_python
from py_backends.commands.judge.tuners import LeftOut

LAUNCH = "grid ceil(n / 16) x ceil(m / 16), block 16 x 16"


def wrapped(kernel: str, backend: str, said: str, text: str = "") -> str:
    """The wrapper of a function in a model."""
    problem = registry.problem(kernel)
    return wrappers_in_python.in_python(call.parse(said, problem), "theirs", text, problem, backend)


@pytest.fixture
def function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A wrapper in plain Python of a function, as it is called."""

    def loaded(kernel: str, said: str, text: str) -> Any:
        files = {"__init__.py": "", "theirs.py": text, "wrapper.py": wrapped(kernel, "python", said, text)}
        made(tmp_path, {f"given/{name}": content for name, content in files.items()})
        monkeypatch.syspath_prepend(str(tmp_path))
        return getattr(importlib.import_module("given.wrapper"), kernel)

    yield loaded
    for name in ("given", "given.theirs", "given.wrapper"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("backend", ["numba_cuda", "triton", "cutile"])
def test_an_output_that_begins_as_zeros_is_cleared_by_a_launch_of_its_own(backend: str) -> None:
    """The head said so, and no kernel of that name was there."""
    text = wrapped("matmul", backend, f"f(a, b, c=0, m, n, k), {LAUNCH}")
    assert "def clear_c(a, b, c, m, n, k):\n    clear(c, m * n)\n" in text
    assert f"models.{backend} import clear\n" in text


@pytest.mark.parametrize("backend", ["numba_cuda", "triton"])
def test_what_host_code_would_not_launch_is_not_called_in_python_either(backend: str) -> None:
    """A kernel whose tiles wrap around divides by the number of rows. Nobody launches it for none."""
    text = wrapped("matmul", backend, f"f(a, b, c, m, n, k), {LAUNCH}")
    assert re.findall(r"if (\w) > 0:", text) == ["m", "n"]
    assert "if " not in wrapped("dot", backend, "f(a, b, c=0, n), grid ceil(n / 256), block 1").partition("def dot")[2]


def test_lists_are_cleared(function: Callable[..., Any]) -> None:
    """A list does not take `c[...] = 0`."""
    text, c = "def add(a, b, c, n):\n    for i in range(n): c[i] += a[i] + b[i]\n", [5.0, 5.0]
    function("vecadd", "add(a, b, c=0, n)", text)([1, 2], [3, 4], c, 2)
    assert c == [4, 6]


def test_a_list_or_a_number_may_be_returned(function: Callable[..., Any]) -> None:
    c = [0.0]
    function("dot", "c = f(a, b)", "def f(a, b):\n    return sum(x * y for x, y in zip(a, b))\n")([1, 2], [3, 4], c, 2)
    assert c == [11]


def test_lists_are_as_long_as_the_case(function: Callable[..., Any]) -> None:
    """Behind them lie guard zones. What was written is seen, to inputs too."""
    text = "def f(a, b, c):\n    for i, (x, y) in enumerate(zip(a, b)): c[i] = x + y\n    a[0] = 9\n"
    a, b, c = [1, 2, 100], [3, 4, 100], [0, 0, 100]
    function("vecadd", "f(a, b, c)", text)(a, b, c, 2)
    assert (a, b, c) == ([9, 2, 100], [3, 4, 100], [4, 6, 100])


def test_an_array_that_never_changes_begins_as_zeros() -> None:
    text = wrapped("matmul", "jax", "c = gemm(a, b, beta=0.0, c)")
    assert "    c = zeros_in_place_of(c)\n    return theirs(a, b, 0.0, c)\n" in text


def test_arrays_of_a_launch_are_as_long_as_the_case_and_have_rows_where_these_are_used() -> None:
    """Numba's own example has `C[i, j]`, and others ask for `z.size`."""
    said = f"f(a, b, c), {LAUNCH}"
    rows = "def f(A, B, C):\n    m, k = A.shape\n    C[0, 0] = A.shape[1]\n    B[0, 0]\n"
    assert "theirs(a[:m * k], b[:k * n], c[:m * n])" in wrapped("matmul", "numba_cuda", said, "def f(A, B, C): A[0]\n")
    others = "def f(A, B, C):\n    C[0][0] = A.shape[-1]\n    len(B[0][0])\n"
    assert wrapped("matmul", "numba_cuda", said, others).count("reshape") == 3
    in_rows = "a[:m * k].reshape((m, k)), b[:k * n].reshape((k, n)), c[:m * n].reshape((m, n))"
    assert f"theirs({in_rows})" in wrapped("matmul", "numba_cuda", said, rows)


TUNED = """import triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({"BLOCK": 256}, num_warps=4)], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    pass
"""
WITHOUT_RULES = re.sub(r"@triton.heuristics.*\n|, EVEN: tl.constexpr", "", TUNED)


def test_a_tuner_gives_the_constants_that_a_call_leaves_out() -> None:
    said = "add(a, b, c, n), grid ceil(n / 256), block 1"
    text = wrapped("vecadd", "triton", said, WITHOUT_RULES)
    assert "theirs(a, b, c, n, BLOCK=tuned_BLOCK)" in text
    assert text.index("tuned_BLOCK = first_of(theirs") < text.index("theirs = beneath(theirs)")
    parsed = call.parse(said, registry.problem("vecadd"))
    assert LeftOut.of(WITHOUT_RULES, parsed).names == ("BLOCK",)
    assert LeftOut.of(TUNED, parsed).computed == ("EVEN",)


def test_a_kernel_that_gets_all_its_constants_is_called_beneath_its_tuner() -> None:
    text = wrapped("vecadd", "triton", "add(a, b, c, n, 256, false), grid ceil(n / 256), block 1", TUNED)
    assert "theirs = beneath(theirs)" in text
    assert "theirs(a, b, c, n, 256, False)" in text


def test_constants_that_no_configuration_gives_are_asked_for(tmp_path: Path) -> None:
    """The product of Triton's tutorial has an ACTIVATION behind the tuned sizes."""
    text = WITHOUT_RULES.replace("constexpr)", "constexpr, ACTIVATION: tl.constexpr)")
    said = "# py-backends: add(a, b, c, n), grid ceil(n / 256), block 1\n"
    file = made(tmp_path, {"x.py": said + text}) / "x.py"
    assert "no configuration of its tuner gives ACTIVATION" in refused("vecadd", file, "--backend", "triton")
    with_default = text.replace("ACTIVATION: tl.constexpr", "ACTIVATION: tl.constexpr = 0")
    parsed = call.parse("add(a, b, c, n)", registry.problem("vecadd"))
    assert LeftOut.of(with_default, parsed).unknown == ()


def test_a_tuner_that_clears_arrays_is_not_left_out_in_silence(tmp_path: Path) -> None:
    text = WITHOUT_RULES.replace('key=["n"]', 'key=["n"], reset_to_zero=["z"]')
    said = "# py-backends: add(a, b, c, n), grid ceil(n / 256), block 1\n"
    file = made(tmp_path, {"x.py": said + text}) / "x.py"
    assert "which begin as zeros" in refused("vecadd", file, "--backend", "triton")


def test_constants_that_a_launch_computes_are_asked_for(tmp_path: Path) -> None:
    """A wrapper compiles before it knows the sizes."""
    text = f"# py-backends: add(a, b, c, n), grid ceil(n / 256), block 1\n{TUNED}"
    file = made(tmp_path, {"x.py": text}) / "x.py"
    assert "give EVEN in the call" in refused("vecadd", file, "--backend", "triton")
