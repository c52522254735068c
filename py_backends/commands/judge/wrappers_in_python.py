"""Sources in Python in this project's form that call a function in a file of anybody's, which stays as it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from py_backends import registry
from py_backends.commands.judge import models
from py_backends.commands.judge.call import Call, names
from py_backends.commands.judge.tuners import LeftOut
from py_backends.commands.judge.wrappers import elements, sides, sizes_of_nothing
from py_backends.contract import Problem
from py_backends.errors import WrongRequest

_SUFFIX_OF_NUMBER = re.compile(r"(?<=\d|\.)[fFuUlL]$")


def in_python(call: Call, module: str, text: str, problem: Problem, backend: str) -> str:
    """A function that calls one of a module beside it, under the decorators of the model's own sources.

    text: the source of that module.
    """
    return _Wrapper(call, text, problem, backend).written(module)


class _Form(NamedTuple):
    """How a model's simplest source is written: its imports, its decorators, and whether it returns its result."""

    imports: list[str]
    decorators: list[str]
    returns: bool


class _Wrapper:
    """What is written for one call of one function."""

    def __init__(self, call: Call, text: str, problem: Problem, backend: str) -> None:
        self._call, self._problem, self._backend, self._names = call, problem, backend, names(problem)
        self._form = _as_the_model_writes(problem, backend)
        self._left_out = LeftOut.of(text, call)
        self._theirs = _function(text, call.own_name)
        self._own = _names_of_model(backend)  # those that its wrappers may use

    def written(self, module: str) -> str:
        """All of it."""
        decorators = reversed(self._form.decorators)
        imports = [f"from types import FunctionType\n\nfrom .{module} import {self._call.name} as theirs"]
        imports += self._form.imports
        lines = [*self._tuned(), ""]
        lines += [f"if isinstance(theirs, FunctionType):\n    theirs = {each}(theirs)" for each in decorators]
        if self._call.work_items:
            for name in self._call.cleared:
                lines += self._function(f"clear_{name}", [self._launched_clear(name)])
        lines += self._function(self._problem.name, self._body())
        if used := [name for name in self._own if re.search(rf"\b{name}\(", "\n".join(lines))]:
            imports.append(f"from {models.__name__}.{self._backend} import {', '.join(used)}")
        return "\n".join([*imports, *lines, ""])

    def _tuned(self) -> Iterator[str]:
        """The constants that a tuner would give a kernel, and the kernel beneath it."""
        if self._left_out.tuned:
            yield from (f"tuned_{name} = first_of(theirs, {name!r})" for name in self._left_out.names)
            yield "OPTIONS = options_of(theirs)" if self._left_out.has_options else ""
            yield "theirs = beneath(theirs)"

    def _function(self, name: str, body: list[str]) -> list[str]:
        head = f"def {name}({', '.join(self._names)}):"
        return [*(f"@{each}" for each in self._form.decorators), head, *(f"    {line}" for line in body)]

    def _launched_clear(self, name: str) -> str:
        if "clear" not in self._own:
            raise WrongRequest(f"{self._backend} has no {name}=0: let the function clear it")
        return f"clear({name}, {elements(self._problem, name)})"

    def _body(self) -> list[str]:
        """A call, within all that it needs: elements to compute, and arrays as long as the case."""
        lines = self._cleared() if not self._call.work_items else []
        lines.append(self._called())
        within = [f"if {size} > 0:" for size in sizes_of_nothing(self._call, self._problem)]
        if "exactly" in self._own and self._problem.size_of_each_dimension() is not None:
            arrays = ", ".join(self._arrays)
            counts = ", ".join(elements(self._problem, name) for name in self._arrays)
            within.append(f"with exactly([{arrays}], [{counts}]) as [{arrays}]:")
        return [f"{'    ' * at}{line}" for at, line in enumerate(within)] + [
            f"{'    ' * len(within)}{line}" for line in lines
        ]

    @cached_property
    def _arrays(self) -> tuple[str, ...]:
        return self._names[: len(self._problem.inputs) + self._problem.outputs]

    def _cleared(self) -> list[str]:
        """How outputs begin as zeros where nothing is launched."""
        if "zeros_in_place_of" in self._own:
            return [f"{name} = zeros_in_place_of({name})" for name in self._call.cleared]
        return [f"{name}[...] = 0" for name in self._call.cleared]

    def _called(self) -> str:
        call = self._call
        given = [self._given(at, each) for at, each in enumerate(call.arguments)]
        given += [f"{name}=tuned_{name}" for name in self._left_out.names]
        called = f"theirs({', '.join(given)})"
        if self._form.returns:
            return f"return {called}"
        if call.result is None:
            return called
        return f"assign({call.result}, {called})" if "assign" in self._own else f"{call.result}[...] = {called}"

    def _given(self, at: int, argument: str) -> str:
        """What stands in the place of a parameter: an array as long as the case where slices are arrays."""
        if argument not in self._arrays:
            bare = _SUFFIX_OF_NUMBER.sub("", argument)
            return bare.capitalize() if bare.lower() in ("true", "false") else bare
        if "SLICES" not in self._own or self._problem.size_of_each_dimension() is None:
            return argument
        flat, own = f"{argument}[:{elements(self._problem, argument)}]", sides(self._problem, argument)
        if len(own) > 1 and self._theirs and _dimensions(self._theirs, at) == len(own):
            return f"{flat}.reshape(({', '.join(own)}))"
        return flat


def _as_the_model_writes(problem: Problem, backend: str) -> _Form:
    for kernel in (problem.name, *registry.kernel_names()):
        text = registry.kernel_texts(kernel, backend).get("lecture")
        if text is None:
            continue
        tree = ast.parse(text.text)
        own = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == kernel]
        taken = len(names(registry.problem(kernel)))
        if own and len(own[0].args.args) == taken:
            imports = [ast.unparse(each) for each in tree.body if _is_of_library(each)]
            returns = any(isinstance(each, ast.Return) and each.value for each in ast.walk(own[0]))
            return _Form(imports, [ast.unparse(each) for each in own[0].decorator_list], returns)
    raise WrongRequest(f"{backend} takes sources in this project's form alone: docs/write-a-kernel.md")


def _is_of_library(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return not (node.module or "").startswith("py_backends")
    return isinstance(node, ast.Import)


def _names_of_model(backend: str) -> list[str]:
    """What `models` has for a model. It is read, and not imported."""
    file = Path(models.__path__[0], f"{backend}.py")
    if not file.is_file():
        return []
    found = []
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.append(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.append(node.targets[0].id)
    return [name for name in found if not name.startswith("_")]


def _function(text: str, name: str) -> ast.FunctionDef | None:
    """A function of a source; None where that has it from elsewhere, or is wrong, which preparing it tells."""
    try:
        every = ast.walk(ast.parse(text))
    except SyntaxError:
        return None
    return next((each for each in every if isinstance(each, ast.FunctionDef) and each.name == name), None)


def _dimensions(function: ast.FunctionDef, at: int) -> int:
    """In how many dimensions a function uses the array that is its parameter at a place: `a[i, j]`, `a.shape[1]`.

    From the end of a shape nobody counts but where there are more dimensions than one.
    """
    parameters = [*function.args.posonlyargs, *function.args.args]
    if at >= len(parameters):
        return 1
    name, found = parameters[at].arg, 1
    for node in ast.walk(function):
        match node:
            case ast.Subscript(value=ast.Name(id=own), slice=ast.Tuple(elts=index)) if own == name:
                found = max(found, len(index))
            case ast.Subscript(value=ast.Subscript(value=ast.Name(id=own))) if own == name:
                found = max(found, 2)
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id=own), attr="shape"), slice=ast.UnaryOp(op=ast.USub())
            ) if own == name:
                found = max(found, 2)
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id=own), attr="shape"), slice=ast.Constant(value=int(place))
            ) if own == name:
                found = max(found, place + 1)
            case ast.Assign(
                targets=[ast.Tuple(elts=sides)], value=ast.Attribute(value=ast.Name(id=own), attr="shape")
            ) if own == name:
                found = max(found, len(sides))
    return found
