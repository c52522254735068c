"""Random programs of NumPy, run on arrays that carry their bound and on the simulated machine."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from simulated_machine import Chance, Simulated

from py_backends.bounds import traced
from py_backends.bounds.precision import Precision
from py_backends.bounds.result import judged
from py_backends.reference import Array
from py_backends.results.check import check_output

PRECISION = replace(Precision.of(np.dtype(np.float32), np.dtype(np.float32)), nearest=False)
SIDE = 4


def assigned(x: Any, y: Any) -> Any:
    made = x.copy()
    made[1:3] = y[:2] * 0.5 + x[1:3]
    return made


def accumulated(x: Any, y: Any) -> Any:
    made = np.zeros_like(x + y)
    for p in range(3):
        made += x * (p + 1)
        made -= y
    return made


def by_rows(x: Any, y: Any) -> Any:
    made = np.zeros_like(x)
    for row in range(SIDE):
        made[row] += x[row] + y[row]
        made[row] -= y[0] * x[row]
    return made


def raised_to_three(x: Any) -> Any:
    return x * x * x


STEPS: tuple[tuple[int, Any], ...] = (
    (2, lambda x, y: x + y),
    (2, lambda x, y: x - y),
    (2, lambda x, y: x * y),
    (2, lambda x, y: x / y),
    (2, lambda x, y: x / (y * y + 1.0)),
    (2, lambda x, y: x @ y),
    (2, np.maximum),
    (2, np.minimum),
    (2, lambda x, y: np.where(x > y, x, y + 1)),
    (2, lambda x, y: np.where(x <= 0, x * y, y)),
    (2, lambda x, y: np.concatenate([x[:2], y[2:]])),
    (2, lambda x, y: np.einsum("ij,ij->i", x, y)[:, None] - x),
    (2, assigned),
    (2, accumulated),
    (2, by_rows),
    (2, np.hypot),
    (2, lambda x, y: x * np.sum(y[0, :2], axis=0)),
    (2, lambda x, y: (x + y) * y[1, 1]),
    (2, lambda x, y: np.where((x > 0) & (y < 1), x, 2.0)),
    (2, lambda x, y: x * (y > x)),
    (1, lambda x: x / np.sqrt((x * x).sum(axis=1, keepdims=True) + 1e-3)),
    (1, lambda x: np.exp(x - x.max(axis=1, keepdims=True)) / 4),
    (1, lambda x: x - x.mean(axis=1, keepdims=True)),
    (1, lambda x: x + x.sum(axis=1, keepdims=True)),
    (1, lambda x: (x * x).sum(axis=0, keepdims=True) - x),
    (1, lambda x: x - x.max(axis=1, keepdims=True)),
    (1, lambda x: np.cumsum(x, axis=1)),
    (1, lambda x: np.maximum.accumulate(x, axis=1)),
    (1, np.minimum.accumulate),
    (1, lambda x: np.add.reduceat(x, [0, 1, 2, 3])),
    (1, lambda x: np.add.reduceat(x, [0, 2])[:1] + x),
    (1, np.exp),
    (1, lambda x: np.exp(-(x * x))),
    (1, np.tanh),
    (1, np.sin),
    (1, np.expm1),
    (1, lambda x: np.log1p(x * x)),
    (1, lambda x: np.sqrt(x * x + 0.1)),
    (1, lambda x: np.sqrt(np.abs(x))),
    (1, lambda x: np.log(np.abs(x) + 1)),
    (1, lambda x: np.sort(x, axis=1)),
    (1, np.floor),
    (1, lambda x: np.clip(x, -1, 2)),
    (1, lambda x: x.T),
    (1, lambda x: x[::-1]),
    (1, lambda x: np.roll(x, 1, 0)),
    (1, lambda x: 0.125 * x),
    (1, lambda x: x * 0.1),
    (1, lambda x: x / 3),
    (1, lambda x: -x),
    (1, raised_to_three),
)


def drawn(generator: np.random.Generator) -> list[Array]:
    """Inputs: random ones, whole ones, of all sizes, and some that are no numbers."""
    kind = generator.integers(8)
    arrays = generator.standard_normal((3, SIDE, SIDE))
    if kind in {1, 2}:
        arrays = np.rint(3 * arrays)
    if kind == 3:
        arrays *= 2.0 ** generator.integers(-70, 70, arrays.shape)
    if kind == 4:
        arrays *= 2.0 ** float(generator.choice([-140, -75, 60, 120]))
    if kind == 5:
        arrays[generator.random(arrays.shape) < 0.3] = 0
    if kind == 6:
        arrays[generator.random(arrays.shape) < 0.03] = generator.choice([np.inf, -np.inf, np.nan])
    return [each.astype(np.float32) for each in arrays]


def program(generator: np.random.Generator) -> Any:
    """Some steps, each on what there is; the last one's result is the program's."""
    plan = []
    for step in range(generator.integers(1, 7)):
        count, function = STEPS[generator.integers(len(STEPS))]
        newest = step + 2
        plan.append((function, [int(each) for each in generator.integers(max(0, newest - 2), newest + 1, count)]))

    def run(*inputs: Any) -> Any:
        pool = list(inputs)
        for function, places in plan:
            pool.append(function(*(pool[place] for place in places)))
        return pool[-1]

    return run


def outcome(seed: int, counts: Counter[str], runs: int = 3) -> str | None:
    """What is wrong with a program's bound, if anything is; and counts of what was seen."""
    generator = np.random.default_rng(seed)
    inputs, made = drawn(generator), program(generator)
    try:
        carried = traced(made, inputs, (), PRECISION)
        reference = judged(carried, np.dtype(np.float32))
    except TypeError:
        counts["refused"] += 1
        return None
    counts["elements"] += reference.value.size * runs
    counts["exact"] += int((reference.bound == 0).sum()) * runs
    counts["unbounded"] += 0 if reference.overflow is None else int(reference.overflow.sum()) * runs
    for _ in range(runs):
        chance = Chance(generator)
        with np.errstate(all="ignore"):
            result = made(*(Simulated.of(chance, each) for each in inputs)).close()
        found = check_output(np.asarray(np.broadcast_to(result, reference.value.shape)), reference, "componentwise")
        if found.reason:
            return f"seed {seed}: {found.reason}"
    return None


if __name__ == "__main__":
    import sys

    first, count = (int(each) for each in sys.argv[1:3])
    seen: Counter[str] = Counter()
    wrong = [each for seed in range(first, first + count) if (each := outcome(seed, seen))]
    print(len(wrong), dict(seen), *wrong[:12], sep="\n")
