"""Where texts in Python can be changed: Numba's, and plain ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import tree_sitter_python
from tree_sitter import Language, Node, Parser, Tree

from . import places
from .places import Change, replaced, written

_ASSIGNING = {"assignment", "augmented_assignment", "for_statement", "for_in_clause"}
_NO_EXPRESSION = {"import_statement", "import_from_statement", "decorator", "parameters"}


def parsed(text: bytes) -> Tree:
    return _parser().parse(text)


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_python.language()))


def changes(root: Node) -> Iterator[Change]:
    """Every change of a kernel text."""
    for node in places.nodes(root):
        finder = _FINDERS.get(node.type)
        if finder is not None and not any(above.type in _NO_EXPRESSION for above in places.ancestors(node)):
            yield from finder(node)


def waits(root: Node) -> Iterator[Change]:
    """A wait left out, or a transfer that is not waited for, in a backend."""
    for node in places.nodes(root):
        if node.type == "expression_statement" and places.WAITS.fullmatch(_called(node)):
            yield replaced(node, "pass", "wait")
        elif node.type == "keyword_argument" and written(node) == "is_blocking=True":
            yield replaced(node, "is_blocking=False", "wait")


def function_of(node: Node) -> str | None:
    """The name of the function that a node is in."""
    return _name_of(node, "function_definition")


def class_of(node: Node) -> str | None:
    """The name of the class that a node is in."""
    return _name_of(node, "class_definition")


def _name_of(node: Node, kind: str) -> str | None:
    found = next((above for above in places.ancestors(node) if above.type == kind), None)
    return None if found is None else written(_field(found, "name"))


def _field(node: Node, name: str) -> Node:
    found = node.child_by_field_name(name)
    assert found is not None, f"{node.type} without {name}"
    return found


def _comparison(node: Node) -> Iterator[Change]:
    operators = [child for child in node.children if not child.is_named]
    for operator in operators:
        yield from places.mistaken_operator(operator)
    right = node.named_children[-1]
    if operators[0].type in {"<", "<="} and right.type != "integer":
        yield from places.one_less(right)


def _operation(node: Node) -> Iterator[Change]:
    for change in places.mistaken_operator(_field(node, "operator")):
        yield Change(change.start, change.end, "//" if change.new == "/" else change.new, change.kind)


def _branch(node: Node) -> Iterator[Change]:
    condition = _field(node, "condition")
    yield replaced(condition, f"not ({written(condition)})", "tail")


def _choice(node: Node) -> Iterator[Change]:
    condition = node.named_children[1]
    yield replaced(condition, f"not ({written(condition)})", "tail")


def _literal(node: Node) -> Iterator[Change]:
    if not written(node).isdecimal() or (node.parent is not None and node.parent.type == "unary_operator"):
        return
    yield replaced(node, str(int(written(node)) + 1), _kind_of_literal(node))


def _kind_of_literal(node: Node) -> str:
    parent = node.parent
    assert parent is not None
    if parent.type == "assignment":
        return "initial" if function_of(node) else "bound"
    for above in places.ancestors(node):
        if above.type == "call" and written(_field(above, "function")).endswith("range"):
            return "bound"
        if above.type == "call" and written(_field(above, "function")).endswith("dtype.type"):
            return "initial"
        if above.type in {"subscript", "call"}:
            return "index"
    return "bound"


def _float(node: Node) -> Iterator[Change]:
    if written(node) == "0.0":
        yield replaced(node, "1.0", "initial")


def _call(node: Node) -> Iterator[Change]:
    function, arguments = _field(node, "function"), _field(node, "arguments").named_children
    if written(function) == "prange":
        yield replaced(function, "range", "directive")
    if places.MINIMA.fullmatch(written(function)):
        yield from places.either(node, arguments)
    elif written(function).endswith("range"):
        for bound in arguments[:1] if len(arguments) == 1 else arguments[1:2]:
            yield replaced(bound, f"{written(bound)} + 1", "bound")
            yield replaced(bound, f"{written(bound)} - 1", "bound")


def _statement(node: Node) -> Iterator[Change]:
    inner = node.named_children[0]
    if inner.type == "string":
        return
    # What a name is first given, the rest of the function needs: without it nothing compiles.
    if inner.type == "assignment" and _field(inner, "left").type in {"identifier", "pattern_list"}:
        return
    if function_of(node) is not None:
        yield replaced(node, "pass", "barrier" if places.BARRIERS.fullmatch(_called(node)) else "statement")


def _called(statement: Node) -> str:
    """The function that a statement calls, as it is written; empty where it is no call."""
    call = statement.named_children[0]
    return written(_field(call, "function")) if call.type == "call" else ""


def _return(node: Node) -> Iterator[Change]:
    if not node.named_children:
        yield replaced(node, "pass", "tail")


def _name(node: Node) -> Iterator[Change]:
    parent = node.parent
    if parent is None or parent.type in {"attribute", "keyword_argument", "pattern_list", "function_definition"}:
        return
    if parent.type in _ASSIGNING and parent.child_by_field_name("left") == node:
        return
    function = next((above for above in places.ancestors(node) if above.type == "function_definition"), None)
    if function is not None:
        yield from places.confused_name(
            node, {written(each) for each in places.nodes(function) if each.type == "identifier"}
        )


_FINDERS = {
    "comparison_operator": _comparison,
    "binary_operator": _operation,
    "augmented_assignment": _operation,
    "boolean_operator": _operation,
    "if_statement": _branch,
    "conditional_expression": _choice,
    "integer": _literal,
    "float": _float,
    "call": _call,
    "expression_statement": _statement,
    "return_statement": _return,
    "identifier": _name,
}
