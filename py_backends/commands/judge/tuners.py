"""Kernels in Python whose decorators give some of their constants: which ones a call leaves to these."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from py_backends.commands.judge.call import Call

_TUNER, _RULES = "autotune", "heuristics"
"""Decorators, by their last names. One tries constants, and the other computes them from a launch's arguments."""
_CONSTANT = "constexpr"
_BEFORE_LAUNCHES = {"reset_to_zero", "restore_value", "pre_hook"}
"""What a tuner also does to arrays, which a launch beneath it does not."""


@dataclass(frozen=True)
class LeftOut:
    """What a call leaves to decorators of its function.

    tuned: whether there are such decorators.
    names: parameters behind those that the call gives.
    has_options: whether a tuner also says how to compile.
    computed: of the names, those that depend on a launch's arguments, which nobody knows while a wrapper is compiled.
    unknown: those to which no configuration gives a value.
    prepares: whether a tuner prepares arrays before each launch.
    """

    tuned: bool = False
    names: tuple[str, ...] = ()
    has_options: bool = False
    computed: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    prepares: bool = False

    @classmethod
    def of(cls, text: str, call: Call) -> LeftOut:
        """What a call leaves out of a function in a source in Python, if that has it under such decorators."""
        try:
            every = [each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.FunctionDef)]
        except SyntaxError:  # which preparing it tells
            return cls()
        own = next((each for each in every if each.name == call.own_name), None)
        decorators = {} if own is None else {_name(each): each for each in own.decorator_list}
        if own is None or not decorators.keys() & {_TUNER, _RULES}:
            return cls()
        names = tuple(each.arg for each in own.args.args[len(call.arguments) :] if _is_constant(each))
        computed = tuple(name for name in names if _RULES in decorators and _is_named(name, decorators[_RULES]))
        tuner = decorators.get(_TUNER)
        if tuner is None:
            return cls(True, names, False, names)
        defaults = {each.arg for each in own.args.args[len(own.args.args) - len(own.args.defaults) :]}
        unknown = tuple(each for each in names if each not in {*computed, *defaults} and not _is_named(each, tuner))
        return cls(True, names, True, computed, unknown, _prepares(tuner))


def _name(decorator: ast.expr) -> str:
    """The last name of a decorator: `autotune` of `@triton.autotune(...)`."""
    return ast.unparse(decorator).partition("(")[0].rpartition(".")[2]


def _is_constant(parameter: ast.arg) -> bool:
    return parameter.annotation is not None and ast.unparse(parameter.annotation).endswith(_CONSTANT)


def _prepares(tuner: ast.expr) -> bool:
    words = (each.arg for each in ast.walk(tuner) if isinstance(each, ast.keyword))
    return not _BEFORE_LAUNCHES.isdisjoint(words)


def _is_named(name: str, decorator: ast.expr) -> bool:
    """Whether a decorator's tables name a constant. Those that are not written out may name any."""
    tables = [each for each in ast.walk(decorator) if isinstance(each, ast.Dict)]
    return not tables or any(
        isinstance(key, ast.Constant) and key.value == name for each in tables for key in each.keys
    )
