"""What is no fault of a source, and yet to be known: a library computes in place of its model, or no device saw it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from py_backends import registry
from py_backends.contract import KernelText
from py_backends.wording import listed

_PRODUCTS = {"matmul", "dot", "vdot", "inner", "tensordot", "einsum"}
"""Functions of any library of arrays that call its BLAS."""
_IN_C = re.compile(r"\b(cblas_\w+|mkl_\w+|cublas\w+|dnnl\w*|[sdcz]gem[mv]_)\s*\(")
_ATOMIC_ADDITION = re.compile(r"\batomic(?:Add|_add|\.add)\b")
_ONLY_EMULATED = (
    "emulated blocks run one after the other: races between them, shared arrays that are too short, elements behind "
    "the end that are read and not used, and vectors at addresses that a GPU refuses are not seen"
)
_NEEDS_ORDER = "its atomics add up in any order on a GPU, where it is refused unless a comment says `Order: any`"


def remarks(text: KernelText, source: str, *, emulated: bool) -> list[str]:
    """Sentences on what an author has written, beside the wrapper that calls it.

    emulated: whether it ran where a device is emulated, which cannot show all that it would show.
    """
    found = _of_libraries(text, source)
    if emulated:
        adds = text.problem.rule == "componentwise" and _ATOMIC_ADDITION.search(source)
        found += [_NEEDS_ORDER] if adds and not text.in_any_order else []
        found.append(_ONLY_EMULATED)
    return found


def _of_libraries(text: KernelText, source: str) -> list[str]:
    if registry.backend(text.backend).library:
        return []
    lecture = registry.kernel_texts(text.kernel, text.backend).get("lecture")
    if lecture is not None and any(_called(lecture.text, text)):  # that is how the model is written
        return []
    called = sorted(set(_called(source, text)))
    return [f"it calls {listed(called)}: a library computes, and not {text.backend}"] if called else []


def _called(source: str, text: KernelText) -> Iterator[str]:
    """The functions of libraries that a source calls."""
    if text.path.suffix != ".py":
        yield from _IN_C.findall(source)
        return
    for node in _nodes(source):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield "@"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _names(text):
            yield ast.unparse(node.func)


def _names(text: KernelText) -> set[str]:
    """The names of functions that compute this kernel alone: those that the sources of libraries call."""
    numpy = [each for name in registry.backend_names() if registry.is_baseline(name)
             for each in registry.kernel_texts(text.kernel, name).values()]  # fmt: skip
    calls = (node for each in numpy for node in _nodes(each.text) if isinstance(node, ast.Call))
    return _PRODUCTS | {node.func.attr for node in calls if isinstance(node.func, ast.Attribute)}


def _nodes(source: str) -> Iterator[ast.AST]:
    try:
        yield from ast.walk(ast.parse(source))
    except SyntaxError:  # which preparing it tells
        return
