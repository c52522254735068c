"""How a kernel is called in a file of anybody's, as one comment of it says, or an option:

    // py-backends: sgemm(m, n, k, alpha=1, a, b, beta=0, c), grid ceil(n / 32) x ceil(m / 32), block 32 x 32
    // py-backends: sgemm(m, n, k, a, b, c), work items n x m, in groups of 16 x 16
    # py-backends: c = multiply(a, b)

The parameters stand in the function's order, by the kernel's own names: its arrays, sizes and numbers. Others are given
as constants. An output that the function reads begins as zeros where it is written `c=0`, and all do beside a constant
`beta`. Otherwise, 0 times the NaN that was there would stay NaN. Where the model launches work items, the launch
follows, as CUDA or as this project's sources write it.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from py_backends import registry
from py_backends.contract import Problem, WorkItems
from py_backends.errors import WrongRequest
from py_backends.wording import listed

_COMMENT = re.compile(r"^[ \t]*(?://|#)[ \t]*py-backends:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_CALL = re.compile(
    r"(?:(?P<result>\w+)\s*=\s*)?(?P<function>[A-Za-z_][\w:]*)\s*(?P<template><[^()]*>)?\s*"
    r"\((?P<arguments>[^()]*)\)\s*(?:,\s*(?P<launch>.+))?"
)
_ARGUMENT = re.compile(
    r"(?:(\w+)\s*=\s*)?(\w+|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[fFuUlL]?|\"[^\"\\]*\"|'[^'\\]*')"
)
_STRINGS = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
_HIDDEN = re.compile(rf"//[^\n]*|/\*.*?\*/|{_STRINGS}", re.DOTALL)
"""Comments, and what stands between quotation marks."""
_HIDDEN_IN_PYTHON = re.compile(rf"#[^\n]*|\"\"\".*?\"\"\"|'''.*?'''|{_STRINGS}", re.DOTALL)
"""The same in Python, where // divides."""
_PARAMETERS = r"(?:[^()]|\(\s*[*&]\s*\w*\s*\)\s*\[)*"
"""What stands between the parentheses of a function, with pointers to rows: `double (*position)[3]`."""
OF_PYTHON = "#"
"""How its comments begin."""
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", re.MULTILINE)
_GRID = re.compile(r"grid (?P<grid>.+), block (?P<block>\d+(?: x \d+)*)")
_BLOCKS = re.compile(r"(?:\w+|ceil\(\w+ / [1-9]\d*\))(?: \* (?:\w+|ceil\(\w+ / [1-9]\d*\)))*")
_WORK_ITEMS = re.compile(r"work items (.+)", re.IGNORECASE)
_MOST_OF_A_BLOCK = 1024
"""Threads, on every GPU that CUDA knows."""
OF_CUDA = re.compile(r"\s*<<<\s*(?P<grid>.*?)\s*(?:,\s*(?P<block>[^,()]*?)\s*)?>>>", re.DOTALL)
"""A launch as CUDA's host code has it. Its expressions are C++'s, which may be anything."""
UNKNOWN = "?"
"""Marks a guess in a proposed call: nobody but the author knows what belongs there."""
_OF_LAUNCHES = "ceil", "x", "in", "groups", "of"
_TYPES = "typename ", "class "
"""How a parameter of a template that is a type begins."""
ADDED_TO = "beta"
"""The usual name of the factor of what an output held before."""


@dataclass(frozen=True)
class Call:
    """A call of a function in a file of anybody's.

    function: its name, with C++'s template arguments.
    arguments: in its order: names of the kernel's parameters, and constants.
    result: the output that it returns; None where it writes to it.
    work_items: of its launch, as sources declare them; None where there is none.
    cleared: the outputs that begin as zeros.
    """

    function: str
    arguments: tuple[str, ...]
    result: str | None = None
    work_items: str | None = None
    cleared: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The function's name, without template arguments."""
        return self.function.partition("<")[0]

    @property
    def template_arguments(self) -> str:
        """C++'s template arguments; empty without any."""
        return self.function.partition("<")[2]

    @property
    def own_name(self) -> str:
        """The name as the function's definition has it, within its namespace."""
        return self.name.rpartition("::")[2]


def said_in(text: str) -> str | None:
    """The call that a comment of a source says; None without one."""
    found = _COMMENT.search(text)
    return found[1] if found else None


def parse(said: str, problem: Problem) -> Call:
    """Parse a call. Raises WrongRequest, with one line, where it is unclear, or is none of the kernel."""
    found = _CALL.fullmatch(said.strip())
    if found is None or OF_CUDA.search(said):
        raise WrongRequest(f"unclear: {said!r}; it is written NAME(parameters), grid ... x ..., block ... x ...")
    if UNKNOWN in (found["template"] or ""):
        raise WrongRequest(f"{found['function']} has {found['template']}: write what is right in place of each guess")
    named = names(problem)
    inputs, arrays = len(problem.inputs), named[: len(problem.inputs) + problem.outputs]
    said_each = [_argument(each.strip(), found["function"], named) for each in found["arguments"].split(",")]
    arguments = tuple(name if name in arrays else value for name, value in said_each)
    for name in (*arrays, *named[len(arrays) + len(problem.dimensions) :]):  # sizes may be constants of the function
        if name not in (*arguments, found["result"]):
            raise WrongRequest(f"{found['function']} does not get {name}: {problem.name} has {listed(named)}")
    if twice := next((name for name in arrays if arguments.count(name) > 1), None):
        raise WrongRequest(f"{found['function']} gets {twice} more than once: give each array in one place")
    if found["result"] not in (None, *arrays[inputs:]):
        raise WrongRequest(f"{found['result']} is no output of {problem.name}")
    for name, value in said_each:
        if name in arrays and value not in named and (name in problem.inputs or not _is_zero(value)):
            outputs = f"{arrays[inputs]}=0 is said of outputs alone"
            raise WrongRequest(f"{found['function']} has {name}={value}, and {name} is an array: {outputs}")
    reads = any(name.lower() == ADDED_TO for name, value in said_each if value not in named)
    zeros = {name for name, value in said_each if _is_zero(value)}
    cleared = tuple(name for name in arrays[inputs:] if reads or name in zeros)
    function = found["function"] + (found["template"] or "")
    return Call(function, arguments, found["result"], _launch(found["launch"], problem), cleared)


def _argument(said: str, function: str, named: Sequence[str]) -> tuple[str, str]:
    """What stands before an equals sign, if any, and its value: a parameter of the kernel, or a constant."""
    found = _ARGUMENT.fullmatch(said)
    value = found[2] if found else ""
    if not value or not (value in named or value.lower() in ("true", "false") or not value.isidentifier()):
        meant = next((name for name in named if name.lower() == said.lower()), None)
        other = f"write {meant}" if meant else f"write one of {listed(named)}, or a constant, as in alpha=2"
        raise WrongRequest(f"{function} has {said or 'nothing'!r}: {other}")
    return (found[1] or "") if found else "", value


def _is_zero(value: str) -> bool:
    return re.fullmatch(r"[-+]?(?:0+\.?0*|\.0+)[fFuUlL]*", value) is not None


def _launch(said: str | None, problem: Problem) -> str | None:
    """A launch as sources declare it. Raises WrongRequest where it is unclear."""
    if said is None:
        return None
    if said.endswith(UNKNOWN):
        raise WrongRequest(f"the launch is a guess: {said!r}; write the one that the kernel needs, without {UNKNOWN}")
    if grid := _GRID.fullmatch(said):
        blocks, widths = grid["grid"].split(" x "), grid["block"].split(" x ")
        dimensions = max(len(blocks), len(widths))
        blocks += ["1"] * (dimensions - len(blocks))
        widths += ["1"] * (dimensions - len(widths))
        items = (f"{count} * {width}" for count, width in zip(blocks, widths, strict=True))
        declared = f"{' x '.join(items)}, in groups of {' x '.join(widths)}"
        if not all(map(_BLOCKS.fullmatch, blocks)):
            counts = "a number, a size, ceil(n / 256) or a product of them; a loop over the grid takes any number"
            raise WrongRequest(f"unclear launch: {said!r}; each count of a grid is {counts}, such as grid 64")
        if math.prod(map(int, widths)) > _MOST_OF_A_BLOCK:
            raise WrongRequest(f"no GPU launches blocks of more than {_MOST_OF_A_BLOCK} threads: {said!r}")
    else:
        items_said = _WORK_ITEMS.fullmatch(said)
        declared = items_said[1] if items_said else said
    try:
        WorkItems.parse(declared)
    except ValueError:
        form = (
            "grid ceil(n / 16) x ceil(m / 16), block 16 x 16, or work items n x m, in groups of 16 x 16; "
            "programs without threads, as Triton's, are in groups of 1"
        )
        raise WrongRequest(f"unclear launch: {said!r}; it is written {form}") from None
    sizes = [name for name in problem.parameters if name not in problem.reals]
    words = re.findall(r"[^\W\d]\w*", declared)
    if unknown := next((word for word in words if word not in (*sizes, *_OF_LAUNCHES)), None):
        raise WrongRequest(f"the launch has {unknown!r}: sizes of {problem.name} are {listed(sizes)}")
    return declared


def names(problem: Problem) -> tuple[str, ...]:
    """The kernel's parameters, as its own sources name them: inputs, outputs, sizes and numbers.

    Without such a source, outputs are `out`, or `out1` and so on.
    """
    usual = (
        *problem.inputs,
        *(["out"] if problem.outputs == 1 else [f"out{at}" for at in range(1, problem.outputs + 1)]),
        *problem.parameters,
    )
    for backend in registry.backend_names():
        for text in registry.kernel_texts(problem.name, backend).values():
            own = next(parameters(text.text, problem.name, len(usual), mark_of(text.path)), None)
            if own and text.variant == "lecture" and own[: len(problem.inputs)] == problem.inputs:
                return own
    return usual


def parameters(text: str, function: str, count: int | None = None, mark: str = "//") -> Iterator[tuple[str, ...]]:
    """The names of a function's parameters, wherever a source has it with so many; in any number without a count."""
    for found in declared(text, function, mark):
        each = tuple(name for part in found if (name := name_of(part)))
        if count in (None, len(each)):
            yield each


def name_of(parameter: str) -> str:
    """The name of a declared parameter, in front of its brackets, its annotation and its default."""
    words = re.findall(r"\w+", re.split(r"=|\[|(?<!:):(?!:)", parameter)[0])
    return words[-1] if words else ""


def declared(text: str, function: str, mark: str = "//") -> Iterator[list[str]]:
    """The declared parameters of a function, wherever a source has it. `mark`: of comments, as `mark_of` has it."""
    name = re.escape(function)
    form = rf"(?:\bdef|[\w>*&)])\s+[*&]?{name}\s*\(({_PARAMETERS})\)\s*(?:noexcept\s*)?[:{{\->]"
    for found in re.finditer(form, without_comments(text, mark)):
        yield found[1].split(",")


def mark_of(file: Path) -> str:
    """How a comment begins in a file."""
    return OF_PYTHON if file.suffix == ".py" else "//"


def without_comments(text: str, mark: str = "//") -> str:
    """A source with blanks in place of its comments and strings. Lines stay where they are."""
    return (_HIDDEN_IN_PYTHON if mark == OF_PYTHON else _HIDDEN).sub(blank, text)


def outside_comments(text: str, change: Callable[[str], str]) -> str:
    """A source in which all is changed but comments, strings and directives."""
    kept = re.compile(f"{_HIDDEN.pattern}|{DIRECTIVE.pattern}", re.DOTALL | re.MULTILINE)
    ends = [0, *(end for found in kept.finditer(text) for end in found.span()), len(text)]
    parts = [text[begin:end] for begin, end in itertools.pairwise(ends)]
    return "".join(part if at % 2 else change(part) for at, part in enumerate(parts))


def blank(found: re.Match[str]) -> str:
    """Blanks in place of all but the ends of lines."""
    return re.sub(r"[^\n]", " ", found[0])


def without_launch(said: str) -> str:
    """A call without a launch that stands as in CUDA's host code."""
    return OF_CUDA.sub("", said)


def misfit(call: Call, text: str, mark: str, left_out: int = 0) -> str | None:
    """How many parameters a call gives and its function takes, where these differ; None where they may fit.

    left_out: how many others the function gets otherwise.
    """
    takes = [found for each in declared(text, call.own_name, mark) if (found := _taken(each, mark)) is not None]
    given = len(call.arguments)
    if not takes or len(takes) < len(list(declared(text, call.own_name, mark))):
        return None
    if any(least <= given + left_out <= most for least, most in takes):
        return None
    return (
        f"the call gives {given} parameters, and {call.own_name} takes {listed([str(most) for _, most in takes], 'or')}"
    )


def _taken(parameters: Sequence[str], mark: str) -> tuple[int, int] | None:
    """How many a function takes at least and at most; None where only a compiler knows: macros, packs, templates."""
    parts = [each.strip() for each in parameters if each.strip()]
    of_python = mark == OF_PYTHON
    unclear = (
        any(each.startswith("*") or each == "/" or "[" in each for each in parts)
        if of_python
        else any("..." in each or "<" in each or not re.search(r"\w[\s*&]+\w", each) for each in parts)
    )
    return None if unclear else (sum("=" not in each for each in parts), len(parts))


def undeduced(call: Call, text: str) -> str | None:
    """What to write where a call lacks template arguments that no compiler can deduce; None where it may have all."""
    templates = list(_templates(text, call.own_name))
    if not templates or len(templates) < len(list(declared(text, call.own_name))):
        return None
    given = len(call.template_arguments.split(",")) if call.template_arguments else 0
    if any(own is None or len(own) <= given for own in templates):
        return None
    guess = template_guess(text, call.own_name)
    return f"the call lacks template arguments, which its parameters do not tell: write {call.name}{guess}(...)"


def template_guess(text: str, function: str) -> str:
    """The template arguments that a call of a function has to say, of which values are guesses; empty where none."""
    own = next(_templates(text, function), None)
    return f"<{', '.join(map(_template_argument, own))}>" if own else ""


def template_parameters(text: str, function: str) -> list[str]:
    """The names of the parameters of a template; empty where a function is none."""
    form = rf"\btemplate\s*<([^;{{}}()]*?)>(?=\s*\w)[^;{{}}<>]*?[\w>*&)]\s+[*&]?{re.escape(function)}\s*\("
    found = re.search(form, without_comments(text))
    return [name_of(each) for each in found[1].split(",")] if found else []


def _template_argument(parameter: str) -> str:
    if parameter.startswith(_TYPES):
        return "float"
    return f"{'true' if re.search(r'bool ', parameter) else 256}{UNKNOWN}"


def _templates(text: str, function: str) -> Iterator[list[str] | None]:
    """Wherever a source has a function as a template: the parameters of it that a call has to say.

    These are all up to the last one that has no default and is in no parameter of the function. None where only a
    compiler knows.
    """
    own_name = rf"[\w>*&)]\s+[*&]?{re.escape(function)}\s*\(([^()]*)\)"
    form = rf"\btemplate\s*<([^;{{}}()]*?)>(?=\s*\w)[^;{{}}<>]*?{own_name}"
    for found in re.finditer(form, without_comments(text)):
        own = [each.strip() for each in found[1].split(",")]
        if any("..." in each or "<" in each for each in own):
            yield None
            continue
        words = re.findall(r"\w+", found[2])
        said = [at for at, each in enumerate(own, 1) if "=" not in each and name_of(each) not in words]
        yield own[: max(said, default=0)]
