"""The API reference: every public name says what it takes, returns and raises. `test_site` makes pages of it."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from types import ModuleType
from typing import Any

import pytest

import py_backends as pb
from py_backends import contract, problem, registry
from py_backends.results import report
from py_backends.workers import probe

pytestmark = pytest.mark.documents

KERNELS = registry.kernel_names()


def words(thing: Any) -> str:
    return inspect.getdoc(thing) or ""


def own(module: ModuleType) -> list[Any]:
    """What a module defines for others."""
    return [
        value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and getattr(value, "__module__", None) == module.__name__
        and hasattr(value, "__doc__")
    ]


def test_all_names_are_there() -> None:
    names: dict[str, Any] = {}
    exec("from py_backends import *", names)  # noqa: S102  # what a user may write
    assert set(pb.__all__) == {"BackendUnavailable", "backends", "compare", "race", "read", *KERNELS} <= set(names)


@pytest.mark.parametrize("name", pb.__all__)
def test_public_names_say_what_they_do(name: str) -> None:
    thing = getattr(pb, name)
    assert len(words(thing)) > 20
    if inspect.isclass(thing):
        return
    parameters = inspect.signature(thing).parameters
    for parameter in parameters:
        assert re.search(rf"^(\w+, )*{parameter}(, \w+)*: .", words(thing), re.MULTILINE), (
            f"{parameter} is not described"
        )
    if parameters:
        assert re.search(r"\bRaises ValueError", words(thing))


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_say_shapes(kernel: str) -> None:
    problem, text = registry.problem(kernel), words(getattr(pb, kernel))
    shapes = problem.size_of_each_dimension()
    assert shapes is not None
    named = [" x ".join(str(-size) if size < 0 else problem.dimensions[size] for size in shape) for shape in shapes]
    for name, shape in zip(problem.inputs, named, strict=False):
        assert re.search(rf"^{name}: .*\b{shape} elements", text, re.MULTILINE)
    result = rf"\b{named[-1]} elements" if named[-1] else re.escape("an array of shape ()")
    assert re.search(f"result: .*{result}", text.splitlines()[0])


@pytest.mark.parametrize("kernel", KERNELS)
def test_bounds_have_a_source(kernel: str) -> None:
    problem = registry.problem(kernel)
    text = words(importlib.import_module(type(problem).__module__))
    assert text.startswith(f"{kernel}: ")
    if problem.rule == "componentwise":
        assert re.search(r"[A-Z]\w+, [A-Z].*(edition|section|ch\.|J\.|\d{4})", text, re.DOTALL), "whose formula is it?"


@pytest.mark.parametrize("module", [contract, problem, report, probe], ids=lambda module: module.__name__)
def test_what_others_derive_from_and_get_back_is_described(module: ModuleType) -> None:
    for thing in own(module):
        assert words(thing), thing
        if dataclasses.is_dataclass(thing):
            assert not words(thing).startswith(f"{thing.__name__}("), f"{thing} has only what Python says by itself"
    for base in (contract.Backend, contract.Device, contract.Problem):
        for name, member in vars(base).items():
            if inspect.isfunction(member) and not name.startswith("_"):
                assert words(member), f"{base.__name__}.{name}"
