"""What functions in C++, CUDA and OpenCL take in place of a pointer to elements: vectors, rows, and references."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from py_backends.commands.judge.call import Call, declared, names, template_parameters
from py_backends.contract import Problem
from py_backends.errors import WrongRequest

_VECTOR = re.compile(r"\b(u?(?:char|short|int|long|longlong)|float|double)([234]|8|16)\b(?=[\s\w]*\*)")
"""A pointer to CUDA's or OpenCL's vectors, which is none to pointers."""
_REGISTER = re.compile(r"\b__m(?:128|256|512)[di]?\b(?=[\s\w]*\*)")
"""A pointer to what a vector unit of x86-64 computes with."""
_ROWS = re.compile(r"\(\s*\*\s*\w*\s*\)")
"""The declarator of a pointer to rows, as in `double (*at)[3]`."""
_REFERENCE = re.compile(r"^[^*\[]*[^*\[&]&\s*(?:__restrict__\s*)?\w*\s*$")
_ALIGNED = re.compile(r"\balignas\b|\baligned\b|__align__")
"""How C++ says that a vector needs more of an address than its elements do."""
_SPACE = re.compile(r"\b(?:__)?(global|constant)\b")


def with_casts(call: Call, text: str, problem: Problem, *, of_cpp: bool) -> Call:
    """A call whose arrays have the types that its function takes.

    text: the source, with what it includes.
    of_cpp: whether `text` is in C++, and not in CUDA or OpenCL, whose vectors have known alignments.

    Raises WrongRequest where a type needs more of an address than that an element lies there.
    """
    fitting = [each for each in declared(text, call.own_name) if len(each) == len(call.arguments)]
    if len({" ".join(",".join(each).split()) for each in fitting}) != 1:  # among several, the compiler chooses
        return call
    arrays = names(problem)[: len(problem.inputs) + problem.outputs]
    unknown = template_parameters(text, call.own_name)
    pointed_at = {name for said in fitting[0] if "*" in said for name in _words(said.partition("*")[0])}
    whole = {"auto", *(set(unknown) - pointed_at)}
    free = of_cpp and not _ALIGNED.search(text)
    given = [
        _cast(said.strip(), argument, call, unknown, free=free)
        if argument in arrays and not ("&" in said and whole & _words(said))  # a pointer itself may be referred to
        else argument
        for said, argument in zip(fitting[0], call.arguments, strict=True)
    ]
    return replace(call, arguments=tuple(given))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def _cast(parameter: str, array: str, call: Call, unknown: Sequence[str], *, free: bool) -> str:
    """An array as a parameter of this declaration takes it. `free`: whether vectors may begin at any element."""
    vector, aligned = _VECTOR.search(parameter), _REGISTER.search(parameter)
    if vector and not free and (vector[2] != "3" or _SPACE.search(parameter)):  # OpenCL's of three have room for four
        aligned = vector
    if aligned:
        to_do = "take a pointer to elements, and read them as vectors where the address allows it"
        raise WrongRequest(f"{call.name} takes {aligned[0]}*, and arrays begin at any element: {to_do}")
    if vector:
        space = f"{found[1]} " if (found := _SPACE.search(parameter)) else ""
        return f"({space}{vector[0]}*){array}"
    if _ROWS.search(parameter):
        kind = _ROWS.sub("(*)", parameter)
        if _words(kind) & set(unknown):
            raise WrongRequest(
                f"{call.name} takes {parameter!r}: write a constant in place of the template's parameter"
            )
        return f"({kind}){array}"
    return f"*{array}" if _REFERENCE.match(parameter) else array
