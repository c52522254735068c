"""Right results of the project's kernels, each computed in some order, against both bounds: the proven and the own one.

    python tests/bounds/random_kernels.py FIRST COUNT [NAME ...]

Every operation is rounded to nearest in the format of the sums, products fused or not. The own bound comes from the
kernel in plain NumPy (`written_plainly`), the proven one from the problem. Whatever the proven one accepts, the own one
has to accept. Prints how often that is so, and how much wider the own one is in the median.
"""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
from written_plainly import KERNELS

from py_backends import registry
from py_backends.bounds import bounded
from py_backends.contract import Array, Problem, Reference
from py_backends.results.check import _within_bound, references_of
from py_backends.system.bits import same_bits

STEPS = 4
"""The most of heat."""


class Machine:
    """Arithmetic in a format of sums, on float64 numbers, in orders that chance decides."""

    def __init__(self, generator: np.random.Generator, sums: np.dtype[Any]) -> None:
        self.generator, self.sums, self.double = generator, sums, sums == np.float64

    def maybe(self) -> bool:
        return bool(self.generator.random() < 0.5)

    def rounded(self, values: Any) -> Array:
        return np.asarray(values).astype(self.sums).astype(np.float64)

    def added(self, terms: list[tuple[Any, Any]], begin: Any = None) -> Array:
        """The sum of products, in some lanes, each in a random order; what there was before begins one of them."""
        order = self.generator.permutation(len(terms))
        lanes: list[Any] = [begin] + [None] * int(self.generator.integers(0, 5))
        fused = not self.double and self.maybe()
        for at, place in enumerate(order):
            lane, (x, y) = at % len(lanes), terms[place]
            if lanes[lane] is None:
                lanes[lane] = self.rounded(x * y)
            else:
                lanes[lane] = self.rounded(lanes[lane] + (x * y if fused else self.rounded(x * y)))
        found = [each for each in lanes if each is not None]
        while len(found) > 1:
            one, other = (found.pop(int(self.generator.integers(len(found)))) for _ in range(2))
            found.append(self.rounded(one + other))
        return np.asarray(found[0])


def matmul(machine: Machine, a: Array, b: Array) -> Array:
    if not a.shape[1]:
        return np.zeros((len(a), b.shape[1]))
    return machine.added([(a[:, [p]], b[[p], :]) for p in range(a.shape[1])])


def heat(machine: Machine, u: Array, steps: int) -> Array:
    for _ in range(steps):
        after, half, eighth = u.copy(), machine.rounded(u[1:-1, 1:-1] / 2), np.float64(1 / 8)
        neighbours = [u[:-2, 1:-1], u[2:, 1:-1], u[1:-1, :-2], u[1:-1, 2:]]
        if machine.maybe():
            after[1:-1, 1:-1] = machine.added([(each, eighth) for each in neighbours], half)
        else:
            after[1:-1, 1:-1] = machine.added([(machine.added([(each, 1.0) for each in neighbours]), eighth)], half)
        u = after
    return u


def nbody(machine: Machine, at: Array, position: Array, mass: Array) -> Array:
    r = machine.rounded
    d = r(position[None] - at[:, None])
    squares = [(d[..., axis], d[..., axis]) for axis in range(3)]
    square = machine.added(squares, np.float64(2.0**-10)) if machine.maybe() else r(machine.added(squares) + 2.0**-10)
    if machine.maybe():
        share = r(mass / r(square * r(np.sqrt(square))))
    else:
        root = r(1 / r(np.sqrt(square)))
        share = r(mass * r(root * r(root * root)))
    if not len(mass):
        return np.zeros(at.shape)
    return machine.added([(share[:, [body]], d[:, body]) for body in range(len(mass))])


def attention(machine: Machine, q: Array, k: Array, v: Array, stored: Any) -> Array:
    r, scale = machine.rounded, np.sqrt(float(q.shape[1]))
    scores = matmul(machine, q, k.T)
    scores = r(scores / r(scale)) if machine.maybe() else r(scores * r(1 / r(scale)))
    weights = r(np.exp(r(scores - scores.max(axis=1, keepdims=True))))
    total = machine.added([(weights[:, [key]], 1.0) for key in range(len(k))])
    if stored is not None and machine.maybe():
        weights = weights.astype(stored).astype(np.float64)
    if stored is None and machine.maybe():
        return matmul(machine, r(weights / total), v)
    return r(matmul(machine, weights, v) / total)


def computed(problem: Problem, machine: Machine, inputs: list[Array], numbers: tuple[Any, ...]) -> Array:
    """What a right kernel gives."""
    wide = [each.astype(np.float64) for each in inputs]
    if problem.name == "transpose":
        return inputs[0].T
    if problem.name == "vecadd":
        return machine.rounded(wide[0] + wide[1])
    if problem.name == "dot":
        return matmul(machine, wide[0][None, :], wide[1][:, None]).reshape(())
    if problem.name == "attention":
        return attention(machine, *wide, inputs[0].dtype if inputs[0].dtype.itemsize == 2 else None)
    run: Any = {"matmul": matmul, "heat": heat, "nbody": nbody}[problem.name]
    found: Array = run(machine, *wide, *numbers)
    return found


def drawn(
    problem: Problem, sizes: tuple[Any, ...], dtype: np.dtype[Any], generator: np.random.Generator
) -> list[Array]:
    """Inputs: random and whole numbers, of one size or of all, with special values among them, or the problem's own."""
    shapes = problem.shapes(sizes)[: len(problem.inputs)]
    kind = generator.integers(7)
    if kind == 6:
        return [np.asarray(each).astype(dtype) for each in problem.draw(sizes, dtype, generator)]
    if dtype.kind == "i":
        return [generator.integers(-128, 128, shape).astype(dtype) for shape in shapes]
    with np.errstate(all="ignore"):
        return [filled(int(kind), shape, dtype, generator).astype(dtype) for shape in shapes]


def filled(kind: int, shape: tuple[int, ...], dtype: np.dtype[Any], generator: np.random.Generator) -> Array:
    array = np.asarray(generator.standard_normal(shape))
    if kind == 1:
        return np.rint(5 * array)
    if kind == 2:
        reach = 14 if dtype == np.float16 else 900 if dtype == np.float64 else 110
        return array * 2.0 ** float(generator.integers(-reach, reach))
    if kind == 3:
        return array * 2.0 ** generator.integers(-12, 12, shape)
    if kind == 4:
        return np.where(generator.random(shape) < 0.05, generator.choice(special(dtype), shape), array)
    if kind == 5:
        return np.where(generator.random(shape) < 0.4, 0.0, np.rint(2 * array))
    return array


def special(dtype: np.dtype[Any]) -> Array:
    limits = {"float16": (65504.0, 2.0**-14, 2.0**-24), "float64": (1.7976931348623157e308, 2.0**-1022, 2.0**-1074)}
    most, normal, least = limits.get(dtype.name, (3.3895313892515355e38, 2.0**-126, 2.0**-133))
    return np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, most, -most, most / 2, normal, -normal, least, -3 * least])


def accepted(output: Array, reference: Reference) -> Array:
    """Which elements a reference calls right."""
    if reference.bound is None:
        return np.asarray(same_bits(output, reference.value) | (np.isnan(output) & np.isnan(reference.value)))
    return _within_bound(output, reference.value, reference.bound, reference.overflow)[0]


def outcome(name: str, seed: int, counts: Counter[str], wider: list[float]) -> str | None:
    """What the own bound refuses of what the proven one accepts, if it does so."""
    problem, generator = registry.problem(name), np.random.default_rng(seed)
    dtype = np.dtype(str(generator.choice(problem.dtypes)))
    most = 300 if name in {"dot", "vecadd"} else 14
    sizes: tuple[Any, ...] = tuple(int(each) for each in generator.integers(1, most, len(problem.dimensions)))
    if name != "attention" and generator.random() < 0.03:  # which has no mean of nothing
        sizes = tuple(0 if generator.random() < 0.5 else each for each in sizes)
    sizes += tuple(int(generator.integers(0, STEPS + 1)) for _ in problem.numbers)
    inputs = drawn(problem, sizes, dtype, generator)
    numbers, result = sizes[len(problem.dimensions) :], problem.result_dtype(dtype)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        own = bounded(KERNELS[name], *inputs, numbers=numbers, sums=problem.sum_dtype(dtype), results=[result])
        (proven,) = references_of(problem, inputs, sizes, dtype)
        machine = Machine(generator, np.dtype(np.float64) if dtype.kind == "i" else problem.sum_dtype(dtype))
        output = computed(problem, machine, inputs, numbers)
        output = (output.astype(np.int64) if dtype.kind == "i" else output).astype(result)
        by_own, by_proven = accepted(output, own), accepted(output, proven)
        nearest = 0.0 if own.bound is None else _within_bound(output, own.value, own.bound, own.overflow)[1]
    counts["elements"] += by_own.size
    counts["proven alone refuses"] += int((by_own & ~by_proven).sum())
    counts["own alone refuses"] += int((by_proven & ~by_own).sum())
    counts["both refuse"] += int((~by_proven & ~by_own).sum())
    counts["exact"] += by_own.size if own.bound is None else int((own.bound == 0).sum())
    counts["largest error in % of its own bound"] = max(
        counts["largest error in % of its own bound"], int(100 * nearest)
    )
    if own.bound is not None and proven.bound is not None:
        counted = (proven.bound > 0) & (own.bound > 0) & np.isfinite(proven.bound) & np.isfinite(own.bound)
        wider += (own.bound[counted] / proven.bound[counted]).tolist()
    wrong = by_proven & ~by_own
    if not wrong.any():
        return None
    where = tuple(int(each) for each in np.argwhere(wrong)[0])
    bound = None if own.bound is None else own.bound[where]
    return f"{name} {dtype} {sizes} seed {seed}{list(where)}: {output[where]} beside {own.value[where]} within {bound}"


def tried(name: str, first: int, count: int) -> tuple[list[str], str]:
    """All that is wrong, and what was seen."""
    counts, wider = Counter[str](), list[float]()
    wrong = [each for seed in range(first, first + count) if (each := outcome(name, seed, counts, wider))]
    median = f"{np.median(wider):.3g} times as wide" if wider else "no bounds"
    return wrong, f"{name}: {count} trials, {dict(counts)}, {median}"


if __name__ == "__main__":
    import sys

    for kernel in sys.argv[3:] or KERNELS:
        found, seen = tried(kernel, int(sys.argv[1]), int(sys.argv[2]))
        print(seen, len(found), *found[:6], sep="\n", flush=True)
