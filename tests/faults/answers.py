"""Answers of kernels: right ones, which the suite must pass, and wrong ones, with the kinds of trials that must see it.

A kernel's own lie in its folder, kernels/KERNEL/faults.py: `FAULTS`, and `RIGHT` for other ways to be right.
Here is what any kernel may get wrong. An answer is a function of a kernel's inputs and numbers, and returns a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from py_backends import registry
from py_backends.conformance.running import verdict
from py_backends.conformance.selection import all_kinds_of
from py_backends.conformance.sizes import work
from py_backends.conformance.trials import Answered, Inputs, Kind, Shapes, Trial, named
from py_backends.contract import Array, Problem
from py_backends.number_formats import number_format

Answer = Callable[..., Array]


class Wrong(NamedTuple):
    """A wrong answer. `made` gives one that has not yet been called."""

    name: str
    made: Callable[[], Answer]
    dtypes: tuple[str, ...]
    kinds: frozenset[str]


def right(kernel: str) -> dict[str, tuple[Answer, tuple[str, ...]]]:
    """Right answers by name, with their formats. The first is the lecture's source for NumPy."""
    return {"the lecture's": (partial(lecture, kernel), registry.problem(kernel).dtypes), **_own(kernel, "RIGHT")}


def wrong(kernel: str) -> list[Wrong]:
    """Wrong ones: those of any kernel, and its own."""
    first = registry.problem(kernel).dtypes[:1]
    general = [Wrong(name, partial(make, kernel), first, kinds) for name, (make, kinds) in _GENERAL.items()]
    own = _own(kernel, "FAULTS").items()
    return general + [
        Wrong(name, partial(_same, found), dtypes, frozenset(kinds)) for name, (found, dtypes, kinds) in own
    ]


def kinds(kernel: str) -> list[Kind[Trial]]:
    """The kinds of trials that judge answers: the suite's, and `compared`, of what `compare` draws."""
    return [*all_kinds_of(kernel), _COMPARED]


def _compared(problem: Problem) -> Iterator[Trial]:
    """At sizes like those of comparisons, divided until they take little time."""
    sizes = problem.default_sizes[: len(problem.dimensions)]
    while work(problem, sizes) > _MUCH_WORK:
        sizes = tuple(size // 2 | 1 for size in sizes)
    yield Trial(named(sizes), sizes, partial(_as_compare_draws, problem))


def _as_compare_draws(problem: Problem, shapes: Shapes, dtype: np.dtype[Any], generator: np.random.Generator) -> Inputs:
    sizes = problem.sizes(*(np.empty(shape, dtype) for shape in shapes))
    return [
        np.asarray(array).astype(dtype)
        for array in problem.draw((*sizes, *(1 for _ in problem.numbers)), dtype, generator)
    ]


_MUCH_WORK = 300_000
_COMPARED = Kind("compared", "what comparisons would not show", _compared, in_others=None)


def reason(answer: Answer, case: Answered, problem: Problem) -> str | None:
    """What is wrong with an answer to a case; None where nothing is."""
    sizes = case.trial.sizes
    with np.errstate(all="ignore"):
        try:
            found = np.asarray(answer(*case.inputs, *sizes[len(problem.dimensions) :]))
        except ArithmeticError as raised:
            return str(raised)
        output = found.astype(problem.result_dtype(case.inputs[0].dtype))
    return verdict([output.reshape(problem.shapes(sizes)[-1])], case, problem.rule)


def lecture(kernel: str, *given: Any) -> Array:
    """What the lecture's source for NumPy answers, of inputs and numbers."""
    problem, text = registry.problem(kernel), registry.kernel_texts(kernel, "numpy")["lecture"]
    inputs, numbers = given[: len(problem.inputs)], given[len(problem.inputs) :]
    sizes = (*problem.sizes(*inputs), *numbers)
    output = _poison(problem, inputs[0].dtype, sizes)
    getattr(text.load(), kernel)(*inputs, output, *sizes)
    return output


def _poison(problem: Problem, dtype: np.dtype[Any], sizes: tuple[int, ...]) -> Array:
    """What is in a result's memory before."""
    result = problem.result_dtype(dtype)
    return np.full(problem.shapes(sizes)[-1], number_format(result).poison, result)


def _own(kernel: str, name: str) -> dict[str, Any]:
    module = f"py_backends.kernels.{kernel}.faults"
    found: dict[str, Any] = getattr(import_module(module), name, {}) if find_spec(module) else {}
    return found


def _same(answer: Answer) -> Answer:
    return answer


def _skips_its_tail(kernel: str) -> Answer:
    """What is left after whole vectors; of a result that always has the same length, an element."""
    shape = (registry.problem(kernel).size_of_each_dimension() or [(0,)])[-1]
    always = bool(shape) and all(size < 0 for size in shape)

    def answer(*given: Any) -> Array:
        output = lecture(kernel, *given)
        flat = output.reshape(-1)
        flat[flat.size - 1 if always else flat.size // 4 * 4 :] = number_format(output.dtype).poison
        return output

    return answer


def _refuses_nothing(kernel: str) -> Answer:
    def answer(*given: Any) -> Array:
        if not all(array.size for array in given[: len(registry.problem(kernel).inputs)]):
            raise ArithmeticError("nothing to do")
        return lecture(kernel, *given)

    return answer


def _is_stale_at_the_hundredth_call(kernel: str) -> Answer:
    calls = 0

    def answer(*given: Any) -> Array:
        nonlocal calls
        calls += 1
        output = lecture(kernel, *given)
        return output if calls % 100 else np.full_like(output, number_format(output.dtype).poison)

    return answer


_GENERAL: dict[str, tuple[Callable[[str], Answer], frozenset[str]]] = {
    "its tail is skipped": (_skips_its_tail, frozenset({"shapes"})),
    "nothing is refused": (_refuses_nothing, frozenset({"nothing"})),
    "the hundredth call is stale": (_is_stale_at_the_hundredth_call, frozenset({"repeats"})),
}
