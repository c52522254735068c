"""Where texts in C++, CUDA, OpenCL C and SYCL can be changed.

One grammar, that of C++, reads them all: the words that the others add are blanked out before, so that places stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser, Tree

from . import places
from .places import Change, replaced, written

_MACRO = r"^#define .*$"
_WORDS_OF_CUDA = (
    r"__global__|__device__|__constant__|__forceinline__|INLINED_ON_GPU|__shared__"
    r"|__launch_bounds__\([^)]*\)|__align__\([^)]*\)"
)
_WORDS_OF_SYCL = r"SYCL_EXT_ONEAPI_FUNCTION_PROPERTY\(\(.*\)\)"
_WORDS_OF_OPENCL = r"\b(?:kernel|global|local)\b(?=\s+\w)"
_ATTRIBUTE = r"__attribute__\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)"
_NOT_OF_CPP = re.compile(f"{_MACRO}|{_WORDS_OF_CUDA}|{_WORDS_OF_SYCL}|{_ATTRIBUTE}".encode(), re.MULTILINE)
_NOT_OF_CPP_IN_OPENCL = re.compile(f"{_MACRO}|{_WORDS_OF_OPENCL}|{_ATTRIBUTE}".encode(), re.MULTILINE)
_PRAGMA_BY_MACRO = re.compile(rb"^#define (\w+) _Pragma\(", re.MULTILINE)
"""A word that may stand before any loop."""
_TYPE_BY_MACRO = re.compile(rb"\b([A-Z]+)\((T|Sum)\)")
"""`FOUR(T) x`, where C++ has a name."""
_NO_EXPRESSION = {
    "template_argument_list", "template_parameter_list", "attribute_declaration", "alignas_qualifier",
    "static_assert_declaration", "gnu_asm_expression", "preproc_include", "preproc_def", "preproc_call",
    "parameter_list",
}  # fmt: skip
"""What is in these says which types there are and how they lie in memory, and not what is computed."""
_NAMING = {
    "declaration", "parameter_declaration", "array_declarator", "pointer_declarator", "update_expression",
    "field_initializer", "field_expression", "template_function",
}  # fmt: skip
"""What a name is in where it stands for no value that is read."""
_NAMED_BY = {
    "init_declarator": ("declarator",),
    "function_declarator": ("declarator",),
    "assignment_expression": ("left",),
    "call_expression": ("function",),
}
"""Of others, in which field."""
_CLAUSES = re.compile(r"\s+(?:collapse|reduction)\s?\([^)]*\)")


def parsed(text: bytes, suffix: str) -> Tree:
    """The syntax tree of a text, whose places are those of the text itself."""
    if suffix == ".cl":
        text = _TYPE_BY_MACRO.sub(rb"\1_\2_", text)
        for pragma in _PRAGMA_BY_MACRO.findall(text):
            text = re.sub(rb"(?<!#define )\b" + pragma + rb"\b", b" " * len(pragma), text)
    not_of_cpp = _NOT_OF_CPP_IN_OPENCL if suffix == ".cl" else _NOT_OF_CPP
    return _parser().parse(not_of_cpp.sub(_blank, text))


def _blank(found: re.Match[bytes]) -> bytes:
    """Spaces for a word. A macro stays: the grammar would take the line after an empty one for its end."""
    return found[0] if found[0].startswith(b"#") else b" " * len(found[0])


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_cpp.language()))


def changes(root: Node) -> Iterator[Change]:
    """Every change of a kernel text."""
    for node in places.nodes(root):
        if node.type == "preproc_call":
            yield from _directive(node)
        elif not _is_no_expression(node) and not _is_only_for_speed(node):
            yield from _changes_at(node)


def waits(root: Node) -> Iterator[Change]:
    """A wait left out, in the host's part of a backend."""
    for node in places.nodes(root):
        if node.type == "expression_statement" and places.WAITS.fullmatch(_called(node)):
            yield replaced(node, ";", "wait")


def conditions(node: Node) -> tuple[tuple[str, bool], ...]:
    """The conditions of the preprocessor around a node, the innermost first, and whether each must hold for it."""
    found = []
    below = node
    for above in places.ancestors(node):
        if above.type in {"preproc_if", "preproc_elif"}:
            condition = above.child_by_field_name("condition")
            assert condition is not None
            found.append((written(condition), above.child_by_field_name("alternative") != below))
        below = above
    return tuple(found)


def function_of(node: Node) -> str | None:
    """The name of the function that a node is in."""
    for above in places.ancestors(node):
        if above.type == "function_definition":
            inner: Node | None = above
            while inner is not None and inner.type not in {"identifier", "field_identifier", "qualified_identifier"}:
                inner = inner.child_by_field_name("declarator")
            return None if inner is None else written(inner)
    return None


def _is_no_expression(node: Node) -> bool:
    return any(above.type in _NO_EXPRESSION or _is_only_for_speed(above) for above in places.ancestors(node))


def _is_only_for_speed(node: Node) -> bool:
    """Whether no result depends on what is in a node: a prefetch, and a branch that does nothing else."""
    if node.type == "if_statement":
        body = node.child_by_field_name("consequence")
        return body is not None and body.type == "expression_statement" and _is_only_for_speed(body.named_children[0])
    return node.type == "call_expression" and bool(places.ONLY_SPEED.fullmatch(written(_field(node, "function"))))


def _changes_at(node: Node) -> Iterator[Change]:
    finder = _FINDERS.get(node.type)
    if finder is not None:
        yield from finder(node)


def _field(node: Node, name: str) -> Node:
    found = node.child_by_field_name(name)
    assert found is not None, f"{node.type} without {name}"
    return found


def _binary(node: Node) -> Iterator[Change]:
    operator = _field(node, "operator")
    yield from places.mistaken_operator(operator)
    right = _field(node, "right")
    if operator.type in {"<", "<="} and right.type != "number_literal" and _is_condition(node):
        yield from places.one_less(right)


def _is_condition(node: Node) -> bool:
    """Whether it is the condition of a loop or a branch, or a part of one."""
    below = node
    for above in places.ancestors(node):
        if above.type in {"for_statement", "if_statement", "while_statement", "conditional_expression"}:
            return above.child_by_field_name("condition") == below
        if above.type not in {"binary_expression", "condition_clause", "parenthesized_expression"}:
            return False
        below = above
    return False


def _assignment(node: Node) -> Iterator[Change]:
    yield from places.mistaken_operator(_field(node, "operator"))


def _branch(node: Node) -> Iterator[Change]:
    if any(child.type == "constexpr" for child in node.children):
        return
    condition = _field(node, "condition")
    inner = condition.child_by_field_name("value") or condition
    yield replaced(inner, f"!({written(inner)})", "tail")


def _literal(node: Node) -> Iterator[Change]:
    digits = re.fullmatch(r"(\d+)([uUlL]*)", written(node))
    if digits is None or (node.parent is not None and node.parent.type == "unary_expression"):
        return
    yield replaced(node, f"{int(digits[1]) + 1}{digits[2]}", _kind_of_literal(node))


def _kind_of_literal(node: Node) -> str:
    below = node
    for above in places.ancestors(node):
        if above.type in {"subscript_argument_list", "argument_list"}:
            return "index"
        if above.type in {"init_declarator", "assignment_expression", "initializer_list"}:
            return "initial" if below == node and not _starts_loop(above) else "bound"
        below = above
    return "bound"


def _starts_loop(node: Node) -> bool:
    below = node
    for above in places.ancestors(node):
        if above.type == "for_statement":
            return above.child_by_field_name("initializer") == below
        below = above
    return False


def _no_initial(node: Node) -> Iterator[Change]:
    if not node.named_children and node.parent is not None and node.parent.type == "init_declarator":
        yield replaced(node, "{1}", "initial")


def _call(node: Node) -> Iterator[Change]:
    if places.MINIMA.fullmatch(written(_field(node, "function"))):
        yield from places.either(node, _field(node, "arguments").named_children)


def _statement(node: Node) -> Iterator[Change]:
    if not _is_only_for_speed(node.named_children[0]):
        yield replaced(node, ";", "barrier" if places.BARRIERS.fullmatch(_called(node)) else "statement")


def _called(statement: Node) -> str:
    """The function that a statement calls, as it is written; empty where it is no call."""
    call = statement.named_children[0]
    return written(_field(call, "function")) if call.type == "call_expression" else ""


def _return(node: Node) -> Iterator[Change]:
    if any(above.type == "if_statement" for above in _up_to_function(node)):
        yield replaced(node, ";", "tail")


def _up_to_function(node: Node) -> Iterator[Node]:
    for above in places.ancestors(node):
        if above.type in {"function_definition", "lambda_expression"}:
            return
        yield above


def _name(node: Node) -> Iterator[Change]:
    if _is_operand(node):
        yield from places.confused_name(node, _names_around(node))


def _is_operand(node: Node) -> bool:
    """Whether a name stands for a value that is read, and not in the head of a loop, which could then run for ever."""
    parent = node.parent
    if parent is None or parent.type in _NAMING:
        return False
    if any(parent.child_by_field_name(field) == node for field in _NAMED_BY.get(parent.type, ())):
        return False
    below = node
    for above in places.ancestors(node):
        if above.type == "for_statement":
            return above.child_by_field_name("body") == below
        if above.type == "compound_statement":
            return True
        below = above
    return False


def _names_around(node: Node) -> set[str]:
    """The names of values in the function that a node is in."""
    for above in places.ancestors(node):
        if above.type == "function_definition":
            return {written(each) for each in places.nodes(above) if each.type == "identifier"}
    return set()


def _directive(node: Node) -> Iterator[Change]:
    """A directive of OpenMP left out, or one of its clauses; a loop at whose end threads do not wait for each other.

    Clauses that say how iterations are shared out, or from which size on, are left alone: no result depends on them.
    """
    line = written(node).rstrip("\n")
    if not re.match(r"#\s*pragma\s+omp\s", line):
        return
    end = node.start_byte + len(line.encode())
    yield Change(node.start_byte, end, "", "directive")
    for clause in _CLAUSES.finditer(line):
        yield Change(node.start_byte + clause.start(), node.start_byte + clause.end(), "", "directive")
    if re.match(r"#\s*pragma\s+omp\s+for\b", line):
        yield Change(end, end, " nowait", "barrier")


_FINDERS = {
    "binary_expression": _binary,
    "assignment_expression": _assignment,
    "if_statement": _branch,
    "conditional_expression": _branch,
    "number_literal": _literal,
    "initializer_list": _no_initial,
    "call_expression": _call,
    "expression_statement": _statement,
    "return_statement": _return,
    "identifier": _name,
}
