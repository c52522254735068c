"""Every kernel on every backend and target gives the right answer at every kind of shape.

Each run goes through a worker, as in a comparison: on an output of NaN, with guard zones behind all
arrays, and judged by the rules of the contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from conftest import at_hand

from py_backends import _discovery
from py_backends._contract import KernelText, Target
from py_backends.harness.case import Case
from py_backends.harness.runner import Runner

SHAPES: dict[str, list[tuple[int, ...]]] = {
    # nothing, one, and one below, at and above each vector width and work group
    "vecadd": [(n,) for n in (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257, 521)],
    "matmul": [
        (0, 5, 3), (5, 0, 3), (5, 3, 0),
        (1, 1, 1), (1, 7, 3), (7, 1, 3), (7, 3, 1), (2, 3, 5),
        (3, 4, 5), (4, 8, 5), (3, 9, 2), (9, 3, 4), (2, 15, 3),
        (3, 16, 2), (2, 17, 3), (4, 31, 3), (2, 32, 5), (3, 33, 2),
        (15, 16, 17), (16, 16, 16), (17, 15, 16), (33, 17, 9), (1, 65, 4), (65, 1, 4), (1, 1, 129),
    ],
}  # fmt: skip
LARGER_SHAPES: dict[str, list[tuple[int, ...]]] = {
    "vecadd": [(4096,), (100_003,), (1_048_577,)],
    "matmul": [
        (64, 64, 64),
        (67, 131, 257),
        (257, 131, 67),
        (300, 1, 200),
        (1, 300, 200),
        (129, 127, 128),
        (200, 170, 150),
        (90, 70, 1700),
        (20, 4200, 40),
    ],
}
"""Not where a device is emulated: those run thread by thread in Python. The last three are shared among threads,
summed in several passes over k, and computed in several passes over columns by kernels that block."""


def texts() -> Iterator[tuple[KernelText, Target]]:
    """Every kernel text with every target on which it may run."""
    for backend, target in at_hand():
        for kernel in _discovery.kernel_names():
            for text in _discovery.kernel_texts(kernel, backend).values():
                yield text, target


def marked_texts() -> Iterator[Any]:
    for text, target in texts():
        mark = getattr(pytest.mark, text.backend)
        yield pytest.param(text, target, marks=mark, id=f"{text.backend}-{target.name}-{text.kernel}-{text.variant}")


def marked_shapes() -> Iterator[Any]:
    for text, target in texts():
        shapes = SHAPES.get(text.kernel, [text.problem.default_sizes])
        for sizes in shapes + ([] if target.emulated else LARGER_SHAPES.get(text.kernel, [])):
            name = f"{text.backend}-{target.name}-{text.kernel}-{text.variant}-{'x'.join(map(str, sizes))}"
            yield pytest.param(text, target, sizes, marks=getattr(pytest.mark, text.backend), id=name)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("text", "target", "sizes"), list(marked_shapes()))
def test_right_at_every_shape(
    runner: Callable[[str, Target], Runner], text: KernelText, target: Target, sizes: tuple[int, ...], dtype: str
) -> None:
    case = Case(text.problem, sizes, np.dtype(dtype), seed=7)
    assert run(runner(text.backend, target), text, case) is None


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("text", "target"), list(marked_texts()))
def test_right_again_after_other_sizes(
    runner: Callable[[str, Target], Runner], text: KernelText, target: Target, dtype: str
) -> None:
    """A kernel that keeps something of an earlier call, or a device buffer of its size, is caught."""
    dimensions = len(text.problem.dimensions)
    for seed, size in enumerate((9, 21, 9, 3, 21)):
        case = Case(text.problem, (size,) * dimensions, np.dtype(dtype), seed)
        assert run(runner(text.backend, target), text, case) is None


def run(runner: Runner, text: KernelText, case: Case) -> str | None:
    """Run a case through the backend's worker; what is wrong with its result, or None."""
    case.poison()
    runner.run(text, case)
    verdict = case.judge()
    runner.unload(case)
    case.close()
    return verdict.reason
