"""How functions in Python are called: with arrays as long as the case, in their model's own way of clearing them."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from written_files import made

from py_backends import registry
from py_backends.commands.judge import call, wrappers_in_python

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


def test_an_array_that_never_changes_begins_as_zeros() -> None:
    text = wrapped("matmul", "jax", "c = gemm(a, b, beta=0.0, c)")
    assert "    c = zeros_in_place_of(c)\n    return theirs(a, b, 0.0, c)\n" in text
