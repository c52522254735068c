"""Leaves out of a source in CUDA what the compiler of kernels alone does not have: what is for the host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from py_backends.commands.judge.call import DIRECTIVE, blank, without_comments

_OF_HOST = re.compile(
    r"<<<|\bcuda[A-Z]\w*|\bcublas\w*|\bstd::|\busing\s+namespace\s+std\b|\b(?:main|printf|fprintf|malloc|exit)\s*\("
)
"""What no device has, in definitions that are none of a function."""
_OF_DEVICE = r"__(?:device|global|constant|shared)__|\bconstexpr"
_SYSTEM_HEADER = re.compile(r"^([ \t]*#[ \t]*(?:include[ \t]*<.*|pragma[ \t]+once.*))$", re.MULTILINE)
_OF_LANGUAGE = (
    r"cuda(?:_runtime(?:_api)?)?\.h|device_(?:launch_parameters|(?:atomic_)?functions)\.h|math_functions\.h|"
    r"vector_(?:types|functions)\.h"
)
"""CUDA's headers of which a compiler of kernels alone knows by itself what is for the device."""
_BEYOND_LANGUAGE = (
    r"cuda_(?:bf16|fp\d+|tf32|tile|pipeline\w*|awbarrier\w*)\.hp*|mma\.h|cuComplex\.h|math_constants\.h|curand_\w+\.h|"
    r"cooperative_groups(?:\.h|/[^>\"]*)|(?:cuda|cub|cutlass|cute|nv)/[^>\"]*|thrust/complex\.h"
)
"""CUDA's headers that are for the device, and no part of the language."""
DEVICE_HEADER = re.compile(rf"^[ \t]*#[ \t]*include[ \t]*([<\"](?:{_BEYOND_LANGUAGE})[>\"])", re.MULTILINE)
_QUOTED = re.compile(rf'^([ \t]*#[ \t]*include[ \t]*)"({_OF_LANGUAGE}|{_BEYOND_LANGUAGE})"', re.MULTILINE)
_LEFT_OUT = "// left out: "
_BOUNDS = re.compile(r"__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)")
_MACRO_OF_DEVICE = re.compile(
    rf"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:[^\n]*\\\n)*[^\n]*\b(?:{_OF_DEVICE})\b", re.MULTILINE
)
_FUNCTION = re.compile(r"\)\s*(?:const|noexcept|->[^()]*)?\s*$")
"""How what stands before the braces of a function ends."""
_SCOPE = re.compile(r"^\s*(?:(?:inline\s+)?namespace\b[\w:\s]*|extern\s*)$")
"""What stands before the braces of a namespace, and of `extern "C"` without what is between quotation marks."""


def of_device(text: str) -> str:
    """A source in CUDA whose kernels are functions of the device, without headers and functions of the host.

    Lines stay where they are.
    """
    theirs = _SYSTEM_HEADER.sub(lambda line: f"{_LEFT_OUT}{line[1]}", text)
    theirs = re.sub(r"\b__global__\b", "__device__", _BOUNDS.sub("", theirs))
    bare = DIRECTIVE.sub(lambda found: f"{blank(found)[:-1]};", without_comments(theirs))
    marks = re.compile(rf"\b(?:{'|'.join([_OF_DEVICE, *_MACRO_OF_DEVICE.findall(theirs)])})\b")
    for begin, end in reversed(list(_definitions(bare))):
        part = bare[begin:end]
        if not marks.search(part) and (_is_function(part) or _OF_HOST.search(part)):
            theirs = theirs[:begin] + "\n" * part.count("\n") + theirs[end:]
    return theirs


def with_device_headers(text: str) -> str:
    """What `of_device` has made, with CUDA's headers for the device again."""
    return "\n".join(
        line if DEVICE_HEADER.match(kept := line.removeprefix(_LEFT_OUT)) is None else kept for line in text.split("\n")
    )


def without_quotes(text: str, folder: Path) -> str:
    """A source in which names of CUDA's headers stand in angle brackets, but for those of files in its folder."""

    def named(line: re.Match[str]) -> str:
        return line[0] if Path(folder, line[2]).is_file() else f"{line[1]}<{line[2]}>"

    return _QUOTED.sub(named, text)


def _is_function(part: str) -> bool:
    """Whether a definition is one of a function."""
    before, brace, _ = part.partition("{")
    return (
        bool(brace) and _FUNCTION.search(before) is not None and "=" not in re.sub(r"\([^()]*\)|<[^<>]*>", "", before)
    )


def _definitions(bare: str) -> Iterator[tuple[int, int]]:
    """Where definitions at the top and in namespaces begin and end, in a source without comments and directives."""
    begin = depth = 0
    for at, letter in enumerate(bare):
        if letter == "{" and depth == 0 and _SCOPE.search(bare[begin:at]):
            begin = at + 1
            continue
        depth += (letter == "{") - (letter == "}")
        if depth < 0:  # a namespace ends
            depth, begin = 0, at + 1
        elif depth == 0 and letter in "};":
            yield begin, at + 1
            begin = at + 1
