"""What to put into a file that does not say how it is called, as far as it and this project's own source tell.

What is a guess has a question mark. A call with one is refused, so that nobody takes a wrong guess for a wrong source.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from py_backends import registry
from py_backends.commands.judge.call import (
    ADDED_TO,
    OF_CUDA,
    OF_PYTHON,
    UNKNOWN,
    declared,
    name_of,
    names,
    parameters,
    template_guess,
    without_comments,
    without_launch,
)
from py_backends.contract import Problem
from py_backends.wording import listed

_SCALARS = {"alpha": "1", ADDED_TO: "0"}
"""What they are in a product alone."""
_REAL = re.compile(r"\b(?:float|double|half)\b")


class _Parameter(NamedTuple):
    """One of a function's: whether it is an array, as far as C tells, and whether that is only read."""

    name: str
    is_array: bool
    is_constant: bool
    is_real: bool
    may_be_left_out: bool


class _Names(NamedTuple):
    """The kernel's parameters by their kinds."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    sizes: tuple[str, ...]
    numbers: tuple[str, ...]

    @property
    def arrays(self) -> tuple[str, ...]:
        return self.inputs + self.outputs


def to_do(text: str, problem: Problem, backend: str | None, mark: str) -> str:
    """What to do for a file that lacks its call: the comment to paste, with what to write in place of the guesses.

    backend: its model, for the launch; None where that is not known yet.
    """
    function, own = _likely(text, problem, mark)
    kinds = _kinds(problem)
    of_function = [_parameter(each) for each in next(declared(text, function, mark), []) if name_of(each)]
    if own and (lacking := _lacking(of_function, kinds, mark)):
        return _around(function, own, lacking, problem, mark, launched=bool(_usual_launch(problem, backend)))
    result, given = "", [*kinds.arrays, *kinds.sizes, *kinds.numbers]
    if own and mark == OF_PYTHON:
        result, given = _in_python(of_function, kinds, returns=_returns(text, function))
    elif own:
        given = _in_c(of_function, kinds)
    template = "" if mark == OF_PYTHON else template_guess(text, function)
    launch = _usual_launch(problem, backend)
    returned = f"{result} = " if result else ""
    line = f"{mark} py-backends: {returned}{function}{template}({', '.join(given)}){launch}"
    return f"put a line such as  {line}{_of_guesses(kinds, given, result, template, launch)}"


def with_launch(said: str, problem: Problem, backend: str, mark: str) -> str:
    """A comment to paste in place of a call that lacks its launch, or has it as CUDA's host code does."""
    as_in_host_code = OF_CUDA.search(said)
    launch = _usual_launch(problem, backend)
    if as_in_host_code and as_in_host_code["grid"].isdecimal() and (as_in_host_code["block"] or "").isdecimal():
        launch = f", grid {as_in_host_code['grid']}, block {as_in_host_code['block']}"
    return f"{mark} py-backends: {without_launch(said).strip()}{launch}{_of_guesses(_kinds(problem), launch=launch)}"


def _of_guesses(
    kinds: _Names, given: Sequence[str] = (), result: str = "", template: str = "", launch: str = ""
) -> str:
    """What to write in place of the guesses of a line; empty where it has none."""
    to_write = []
    if any(each.endswith(UNKNOWN) for each in given):
        left = kinds.sizes + kinds.numbers if set(kinds.arrays) <= {*given, result} else sum(kinds, ())
        to_write.append(f"one of {listed(left)}, or a constant, for each name")
    if UNKNOWN in template:
        to_write.append("a constant for each template argument")
    if launch.endswith(UNKNOWN):
        to_write.append("the launch that the kernel needs")
    return f"; what has a {UNKNOWN} is a guess: write {', and '.join(to_write)}" if to_write else ""


def _kinds(problem: Problem) -> _Names:
    named = names(problem)
    inputs, arrays = len(problem.inputs), len(problem.inputs) + problem.outputs
    numbers = arrays + len(problem.dimensions)
    return _Names(named[:inputs], named[inputs:arrays], named[arrays:numbers], named[numbers:])


def _parameter(said: str) -> _Parameter:
    before = said.partition("=")[0]
    of_elements = re.split(r"[*\[]", before)[0]
    is_constant = re.search(r"\bconst\b|constant\b", of_elements) is not None
    is_array, is_real = of_elements != before, _REAL.search(of_elements) is not None
    return _Parameter(name_of(said), is_array, is_constant, is_real, "=" in said)


def _lacking(own: Sequence[_Parameter], kinds: _Names, mark: str) -> list[str]:
    """The kernel's numbers, where a function has parameters for its sizes at most."""
    by_name = {each.name.lower() for each in own}
    lacking = [name for name in kinds.numbers if name.lower() not in by_name]
    arrays = len(kinds.inputs) if mark == OF_PYTHON else sum(each.is_array for each in own)
    others = len([each for each in own if each.name.lower() not in _SCALARS]) - arrays
    return lacking if others <= len(kinds.sizes) else []


def _around(
    function: str, own: Sequence[str], lacking: Sequence[str], problem: Problem, mark: str, *, launched: bool
) -> str:
    """What to do where a function does not take a number of its kernel."""
    taken = f"{problem.name} has the number {listed(lacking)}, which {function}({', '.join(own)}) does not take"
    if launched:
        return f"{taken}: what needs several launches has this project's form, docs/write-a-kernel-of-steps.md"
    call = f"{mark} py-backends: NAME({', '.join(names(problem))})"
    return f"{taken}: write a function that takes it and calls {function}, and a line such as  {call}"


def _in_c(own: Sequence[_Parameter], kinds: _Names) -> list[str]:
    """What a function in C gets in the place of each parameter."""
    arrays = iter(_arrays([each for each in own if each.is_array], kinds))
    scalars = [each for each in own if not each.is_array]
    whole = [each for each in scalars if not each.is_real and _exact(each, kinds.numbers) is None]
    alone = len(kinds.sizes) == 1 and len(whole) == 1
    return [
        next(arrays) if each.is_array else kinds.sizes[0] if alone and each is whole[0] else _scalar(each, kinds)
        for each in own
    ]


def _arrays(own: Sequence[_Parameter], kinds: _Names) -> list[str]:
    """The kernel's arrays in the place of a function's.

    By their names, if all agree. Else what is constant is an input, and the others are outputs. Where nothing is
    constant, a name that is left alone is the array that is left.
    """
    by_name = [_exact(each, kinds.arrays) for each in own]
    writes = any(each.is_constant and name in kinds.outputs for each, name in zip(own, by_name, strict=True))
    if not writes and (agreeing := _agreeing(own, kinds.arrays)):
        return agreeing
    if any(each.is_constant for each in own):
        inputs = _in_order([each for each in own if each.is_constant], kinds.inputs)
        outputs = _in_order([each for each in own if not each.is_constant], kinds.outputs)
        return [next(inputs) if each.is_constant else next(outputs) for each in own]
    left = [name for name in kinds.arrays if name not in by_name]
    alone = len(left) == 1 and by_name.count(None) == 1
    return [name or (left[0] if alone else f"{each.name}{UNKNOWN}") for each, name in zip(own, by_name, strict=True)]


def _agreeing(own: Sequence[_Parameter], named: Sequence[str]) -> list[str]:
    """The names of parameters, if each is one of these, and none twice; else empty."""
    by_name = [name for each in own if (name := _exact(each, named))]
    return by_name if len(set(by_name)) == len(own) else []


def _in_order(own: Sequence[_Parameter], arrays: Sequence[str]) -> Iterator[str]:
    """The arrays by their names, if all agree, else in order. What is too many is unknown."""
    yield from _agreeing(own, arrays) or [
        arrays[at] if at < len(arrays) else f"{each.name}{UNKNOWN}" for at, each in enumerate(own)
    ]


def _scalar(own: _Parameter, kinds: _Names) -> str:
    """What is no array: a number by its name, a usual constant, or a size, which is a guess where there are several."""
    if number := _exact(own, kinds.numbers):
        return number
    if constant := _SCALARS.get(own.name.lower()):
        return f"{own.name}={constant}"
    size = _exact(own, kinds.sizes)
    return size if size and len(kinds.sizes) == 1 else f"{size or own.name}{UNKNOWN}"


def _exact(own: _Parameter, named: Sequence[str]) -> str | None:
    """The name that a parameter has, whatever its case."""
    return next((name for name in named if name.lower() == own.name.lower()), None)


def _in_python(own: Sequence[_Parameter], kinds: _Names, *, returns: bool) -> tuple[str, list[str]]:
    """The output that a function in Python returns, if it has no parameter for that, and what each parameter gets.

    Names do not tell what is an array. So the inputs that have no parameter of their name are those of other names.
    """
    needed = [each for each in own if not each.may_be_left_out]
    others = [each for each in needed if _exact(each, kinds.arrays) is None]
    missing = [name for name in kinds.inputs if not any(_exact(each, [name]) for each in needed)]
    unknown = [each for each in others if _exact(each, kinds.sizes + kinds.numbers) is None]
    writes = any(_exact(each, kinds.outputs) for each in needed)
    if not returns or writes or len(kinds.outputs) > 1 or len(unknown) > len(missing):
        return "", [_exact(each, kinds.arrays) or _scalar(each, kinds) for each in own]
    sizes = [each for each in others if each not in unknown]
    arrays = [*unknown, *sizes[: len(missing) - len(unknown)]]
    taken = [each for each in others if each in arrays]
    return kinds.outputs[0], [
        missing[taken.index(each)] if each in taken else _exact(each, kinds.arrays) or _scalar(each, kinds)
        for each in needed
    ]


def _returns(text: str, function: str) -> bool:
    """Whether a function in Python returns something."""
    try:
        every = [each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.FunctionDef)]
    except SyntaxError:  # which preparing it tells
        return False
    own = (each for each in every if each.name == function)
    return any(isinstance(node, ast.Return) and node.value for each in own for node in ast.walk(each))


def _likely(text: str, problem: Problem, mark: str) -> tuple[str, tuple[str, ...]]:
    """The function of a file that is probably meant: the first kernel, else the one with the most parameters."""
    kernels = re.findall(
        r"\b(?:__global__|kernel|__kernel)\s[^;{(]*?(\w+)\s*\(", re.sub(r"__launch_bounds__\([^)]*\)", "", text)
    )
    form, bare = r"(?:\bdef|[\w>*&])\s+[*&]?(\w+)\s*\([^()]*\)\s*[:{\->]", without_comments(text, mark)
    functions = [name for name in kernels or re.findall(form, bare) if name not in ("main", "if", "for")]
    found = [(name, own) for name in functions for own in parameters(text, name, mark=mark)]
    return max(found, key=lambda each: len(each[1]), default=(problem.name, ()))


def _usual_launch(problem: Problem, backend: str | None) -> str:
    """The launch of the kernel's own source for a model, as a guess; empty where it has none."""
    text = None if backend is None else registry.kernel_texts(problem.name, backend).get("lecture")
    if text is None:
        return ""
    try:
        _, items = text.stages("GPU").kernels[0]
    except ValueError:
        return ""
    grid = [_blocks(count, width) for count, width in zip(items.counts, items.group, strict=True)]
    group = " x ".join(map(str, items.group))
    if text.path.suffix == ".cu" and None not in grid:
        return f", grid {' x '.join(filter(None, grid))}, block {group}{UNKNOWN}"
    return f", work items {' x '.join(items.counts)}, in groups of {group}{UNKNOWN}"


def _blocks(count: str, width: int) -> str | None:
    """How many blocks so many threads are, as CUDA's launches have it; None where it is no size and no number."""
    if count.isdecimal():
        return str(-(-int(count) // width))
    return f"ceil({count} / {width})" if count.isidentifier() else None
