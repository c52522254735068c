"""A function for each kernel, as in `pb.matmul(a, b, backend=...)`."""

from __future__ import annotations

import inspect
import operator
import sys
from collections.abc import Callable, Mapping
from functools import cache
from numbers import Real
from typing import Any

from py_backends import folders, registry
from py_backends.contract import Problem
from py_backends.errors import BrokenKernel
from py_backends.functions.call import call, shortcuts
from py_backends.functions.dispatch import lookup
from py_backends.limits import LARGEST_SIZE
from py_backends.wording import listed, shown

_shortcut_of = shortcuts.get
"""Bound once, since the lookup of a method of an imported name takes 40 ns of a call's 300."""


def find(name: str) -> Any:
    """The function `py_backends.NAME` of a kernel. Raises AttributeError for an unknown name."""
    if not registry.is_kernel(name):
        raise AttributeError(f"module 'py_backends' has no attribute {name!r}")
    try:
        _found.add(name)
        return function(name)
    except BrokenKernel as broken:
        raise AttributeError(f"module 'py_backends' has no {name!r}: {broken}") from broken


@cache
def function(kernel: str) -> Callable[..., Any]:
    """The Python function that runs a kernel. Raises ValueError if there is no such kernel."""
    problem = registry.problem(kernel)
    run = _of_a_and_b(problem) if problem.inputs == ("a", "b") and not problem.numbers else _of_any(problem)
    run.__name__ = run.__qualname__ = kernel
    run.__module__ = "py_backends"  # where others find it by its name, as pickle does
    run.__doc__ = _documentation(problem)
    return run


_found: set[str] = set()
"""Those that `py_backends` keeps by their names."""


def _forget(kernel: str) -> None:
    """Make functions anew, and also that which `py_backends` keeps."""
    function.cache_clear()
    if kernel in _found:
        vars(sys.modules["py_backends"]).pop(kernel, None)


folders.FORGET.append(_forget)


def _of_a_and_b(problem: Problem) -> Callable[..., Any]:
    """The function of a kernel with the inputs `a` and `b`. It does the same as `_of_any`, but faster."""
    kernel = problem.name

    def run(
        a: Any,
        b: Any,
        *,
        backend: str,
        variant: str | None = None,
        target: str | None = None,
        threads: int | None = None,
        out: Any = None,
        to: str | None = None,
    ) -> Any:
        asked = (kernel, backend, variant, target, threads, type(threads))  # 2.0 == 2, but 2.0 is refused
        if to is None:
            try:
                shortcut = _shortcut_of(asked)
            except TypeError:  # as `lookup` does, whose call would take longer than these lines
                shortcut = None
            if shortcut is not None and (made := shortcut(a, b, out)) is not None:
                return made
        return call(problem, asked, (a, b), out, to)

    return run


def _of_any(problem: Problem) -> Callable[..., Any]:
    """The function of a kernel with any inputs, by position or by name, and with numbers, by name."""
    kernel = problem.name

    def run(
        *inputs: Any,
        backend: str,
        variant: str | None = None,
        target: str | None = None,
        threads: int | None = None,
        out: Any = None,
        to: str | None = None,
        **named: Any,
    ) -> Any:
        asked = (kernel, backend, variant, target, threads, type(threads))
        numbers = _numbers(problem, named) if problem.numbers else ()
        inputs = _by_place(problem, inputs, named)
        if to is None:
            shortcut = lookup(shortcuts, asked)
            if shortcut is not None and (made := shortcut(*inputs, out, *numbers)) is not None:
                return made
        return call(problem, asked, inputs, out, to, numbers)

    run.__signature__ = _signature(problem, run)  # type: ignore[attr-defined]  # a function may have it
    return run


def _signature(problem: Problem, run: Callable[..., Any]) -> inspect.Signature:
    """The signature for `help()`: the inputs by their names, then the numbers and the options."""
    options = inspect.signature(run).parameters.values()
    keywords = [each for each in options if each.kind is inspect.Parameter.KEYWORD_ONLY]
    inputs = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in problem.inputs]
    numbers = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=type(default).__name__)
        for name, default in problem.numbers.items()
    ]
    return inspect.Signature([*inputs, *numbers, *keywords])


def _documentation(problem: Problem) -> str:
    count, every = len(problem.inputs), [_in_words(problem, at) for at in range(len(problem.inputs) + problem.outputs)]
    inputs = "\n".join(f"{name}: {array}." for name, array in zip(problem.inputs, every, strict=False))
    inputs += "".join(
        f"\n{name}: {'a real number' if name in problem.reals else 'a whole number, 0 or more'}. {default} without it."
        for name, default in problem.numbers.items()
    )
    others = "".join(f", {result} for {dtype}" for dtype, result in problem.results.items())
    return (_DOCUMENTATION if problem.outputs == 1 else _OF_SEVERAL_OUTPUTS).format(
        kernel=problem.name,
        rule=problem.rule,
        inputs=inputs,
        outputs="; ".join(every[count:]),
        dtypes=listed(problem.dtypes),
        one_dtype="one dtype" if problem.one_dtype else "one dtype, where they have none of their own",
        others=others,
    )


def _in_words(problem: Problem, at: int) -> str:
    """An array of a kernel, with its dtype if it has one of its own, and its shape if its signature tells that.

    Each dimension has one of the problem's sizes or a fixed length, negated.
    """
    own, every = problem.own_dtype(at), problem.size_of_each_dimension()
    array = f"an array of {own}" if own is not None else "an array"
    if every is None:
        return array
    if not every[at]:
        return f"{array} of shape ()"
    lengths = " x ".join(str(-size) if size < 0 else problem.dimensions[size] for size in every[at])
    return f"{array} of {lengths} elements"


_DOCUMENTATION = """Run {kernel} on a backend, and return its result: {outputs}.

{inputs}
backend: its name, as `py_backends.backends()` lists them.
variant: `tuned` or `lecture`. None: the first of these that the backend has.
target: where the backend runs it. None: the first available one that takes these inputs.
threads: for a backend that runs on the CPU. None: all logical CPUs.
out: an array of the result's shape and dtype to write to and return.
to: where a new result lies. `host` or None: on the host, as a NumPy array. `device`: where the backend computed it, as
    an array of the backend's library.

Inputs are arrays of {one_dtype}, which the backend has: {dtypes}.
The result has that dtype{others}. Inputs are never changed. Arrays on the host may have any strides. They are of NumPy,
or of a library that speaks DLPack or Python's buffer protocol. Arrays on a device are used there, and must be
C-contiguous. The result is right by the rule '{rule}' of docs/reference.md.

Raises ValueError for wrong shapes, unknown names and an unfit `out`. Raises TypeError for wrong or mixed dtypes, a
wrong number of inputs, and arrays that the backend cannot reach without a copy from their device. Raises
BackendUnavailable for a backend that is not available, and MemoryError where memory does not suffice.
"""

_OF_SEVERAL_OUTPUTS = (
    _DOCUMENTATION.replace("return its result: {outputs}", "return a tuple of its results: {outputs}")
    .replace(
        "out: an array of the result's shape and dtype to write",
        "out: a tuple of arrays, one for each result, to write",
    )
    .replace("The result has that dtype", "Results have that dtype")
)


def _by_place(problem: Problem, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """All inputs in their order. Raises TypeError if one is missing, unknown or given twice."""
    names = problem.inputs
    unknown = next((name for name in named if name not in names), None)
    if unknown is not None:
        also = f", its numbers {listed(list(problem.numbers))}" if problem.numbers else ""
        raise TypeError(f"{problem.name} has no parameter {unknown!r}; its inputs are {listed(names)}{also}")
    if len(inputs) + len(named) != len(names):
        number = "1 input" if len(names) == 1 else f"{len(names)} inputs"
        raise TypeError(f"{problem.name} takes {number}, {listed(names)}; {len(inputs) + len(named)} were given")
    twice = next((name for name in names[: len(inputs)] if name in named), None)
    if twice is not None:
        raise TypeError(f"{problem.name} was given {twice!r} by position and by name")
    return (*inputs, *(named[name] for name in names[len(inputs) :]))


def _numbers(problem: Problem, named: dict[str, Any]) -> tuple[Any, ...]:
    """The numbers of a call, taken from what is given by name.

    Raises TypeError for what is no whole number from 0, or no real number where that is asked for.
    """
    numbers = {name: named.pop(name, default) for name, default in problem.numbers.items()}
    return tuple(
        _real(problem, name, number) if name in problem.reals else _whole(problem, name, number)
        for name, number in numbers.items()
    )


def _real(problem: Problem, name: str, number: Any) -> float:
    if isinstance(number, bool) or not isinstance(number, Real):
        raise TypeError(f"{name} of {problem.name} must be a real number, not {type(number).__name__}")
    return float(number)  # OverflowError for a whole number of hundreds of digits


def _whole(problem: Problem, name: str, number: Any) -> int:
    whole = not isinstance(number, bool | float) and hasattr(number, "__index__")
    if not whole or not 0 <= operator.index(number) <= LARGEST_SIZE:
        given = shown(number) if whole else type(number).__name__
        raise TypeError(f"{name} of {problem.name} must be a whole number from 0 to 2^40, not {given}")
    return operator.index(number)
