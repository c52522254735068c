"""Where a text can be changed, and into what: the rules that all languages share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

RELATIONAL = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
ARITHMETIC = {
    "+": "-", "-": "+", "*": "+", "/": "*", "//": "*", "%": "/", "<<": ">>", ">>": "<<", "&": "|", "|": "&",
    "+=": "-=", "-=": "+=", "*=": "+=",
}  # fmt: skip
LOGICAL = {"&&": "||", "||": "&&", "and": "or", "or": "and"}

NEIGHBOURS = {
    "i": ("j", "p"), "j": ("i", "p"), "p": ("i", "j", "q"), "q": ("p", "j"), "m": ("n", "k"), "n": ("k", "m"),
    "k": ("n", "m"), "i0": ("j0", "p0"), "j0": ("i0", "p0"), "p0": ("i0", "j0"), "i1": ("j1",), "j1": ("i1",),
    "p1": ("p0",), "r": ("s",), "s": ("r",), "x": ("y",), "y": ("x",), "z": ("w",), "w": ("z",), "a": ("b",),
    "b": ("a",), "row": ("column",), "column": ("row",), "rows": ("columns", "registers"),
    "columns": ("rows", "registers"), "height": ("width",), "width": ("height", "depth"), "begin": ("end",),
    "end": ("begin",), "down": ("across",), "across": ("down",), "depth": ("stride", "columns", "width"),
    "stride": ("depth", "rows"),
}  # fmt: skip
"""What an index, a size or an array is easily mistaken for: the first of these that the same function knows."""

MINIMA = re.compile(r"(?:(?:sycl|std)::)?(?:min|max|least)")
BARRIERS = re.compile(
    r"(?:\w+(?:::|\.))*(?:barrier|mem_fence|group_barrier|sub_group_barrier|__syncthreads|__syncwarp|syncthreads|syncwarp"
    r"|_mm_sfence|wait_for_copies|end_group_of_copies|finish_streaming)(?:<.*>)?"
)
WAITS = re.compile(r".*(?:\.|\b)(?:finish|wait|wait_and_throw|synchronize|flush|block_until_ready)")
ONLY_SPEED = re.compile(r"(?:\w+::)*(?:prefetch|fetch|_mm_prefetch|__builtin_prefetch|madvise)(?:<.*>)?")
"""Calls that no result depends on."""


@dataclass(frozen=True)
class Change:
    """Bytes `start` to before `end` of a text replaced by `new`.

    kind: which sort of mistake it is, for instance `relational`.
    """

    start: int
    end: int
    new: str
    kind: str


def written(node: Node) -> str:
    """A node as it is written."""
    text = node.text
    assert text is not None, "a tree that was parsed from bytes has them"
    return text.decode()


def replaced(node: Node, new: str, kind: str) -> Change:
    return Change(node.start_byte, node.end_byte, new, kind)


def ancestors(node: Node) -> Iterator[Node]:
    """The parent, its parent, and so on."""
    above = node.parent
    while above is not None:
        yield above
        above = above.parent


def nodes(root: Node) -> Iterator[Node]:
    """Every node of a tree that has a name, in the order of the text."""
    todo = [root]
    while todo:
        node = todo.pop()
        if node.is_named:
            yield node
        todo.extend(reversed(node.children))


def mistaken_operator(operator: Node) -> Iterator[Change]:
    """`<` for `<=`, `+` for `-`, and the like."""
    for kind, table in (("relational", RELATIONAL), ("arithmetic", ARITHMETIC), ("tail", LOGICAL)):
        if operator.type in table:
            yield replaced(operator, table[operator.type], kind)


def one_less(bound: Node) -> Iterator[Change]:
    """A bound one too low. (That its comparison is mistaken makes it one too high.)"""
    simple = bound.type in {
        "identifier",
        "field_expression",
        "attribute",
        "call_expression",
        "call",
        "qualified_identifier",
    }
    yield replaced(bound, f"{written(bound)} - 1" if simple else f"({written(bound)}) - 1", "bound")


def either(call: Node, arguments: list[Node]) -> Iterator[Change]:
    """A minimum or maximum that is always the one or always the other."""
    if len(arguments) == 2:
        for argument in arguments:
            yield replaced(call, f"({written(argument)})", "tail")


def confused_name(node: Node, known: set[str]) -> Iterator[Change]:
    """One index, size or array for another; `known` are the names of the function around."""
    for other in NEIGHBOURS.get(written(node), ()):
        if other in known:
            yield replaced(node, other, "index")
            return
