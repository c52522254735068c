"""The compiled kernels on arrays that end where their memory does, at every kind of edge.

Workers share memory with the harness, in which AddressSanitizer sees no ends. Here arrays are what `malloc` gave, as
they are to the Python functions, so that under that instrument each access past an array is seen. Without one this
shows that results are right with any number of threads, and for arrays that are not aligned.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from py_backends import registry
from py_backends.contract import Array
from py_backends.errors import BackendUnavailable
from py_backends.kernel_text import KernelText
from py_backends.results.check import check_output, reference_of

pytestmark = pytest.mark.slow

COMPILED = ("avx", "cpp", "openmp", "stdpar")
SHAPES: dict[str, list[tuple[int, ...]]] = {
    "vecadd": [(n,) for n in (*range(18), 31, 32, 33, 63, 64, 65, 257, 65_535, 65_537, 100_003)],
    "matmul": [
        *((0, 5, 3), (5, 0, 3), (5, 3, 0), (1, 1, 1), (1, 7, 3), (7, 1, 3), (7, 3, 1), (3, 4, 5), (15, 16, 17)),
        *((33, 17, 9), (1, 65, 4), (65, 1, 4), (1, 1, 129), (2, 33, 40), (14, 2, 70), (67, 131, 257)),
        *((300, 1, 200), (1, 300, 200), (129, 127, 128), (200, 170, 150), (90, 70, 1700), (20, 4200, 40)),
    ],
    "dot": [(n,) for n in (*range(18), 31, 32, 33, 63, 64, 65, 257, 65_535, 65_537, 140_003)],
    "heat": [
        *((0, 5, 2), (5, 0, 2), (1, 1, 0), (1, 70, 3), (70, 1, 2), (2, 3, 1), (3, 3, 16), (15, 18, 5), (34, 66, 17)),
        *((300, 1040, 3), (1000, 70, 33), (40, 2050, 40)),
    ],
    "nbody": [
        *((0, 5), (5, 0), (1, 1), (1, 17), (3, 2), (8, 9), (15, 16), (17, 33), (31, 5), (33, 17), (65, 129)),
        *((300, 257), (1, 3000), (3000, 1)),
    ],
    "attention": [
        *((0, 5, 3), (5, 0, 3), (1, 1, 1), (1, 17, 3), (3, 2, 17), (8, 9, 7), (15, 16, 17), (17, 33, 31), (31, 5, 65)),
        *((65, 64, 129), (13, 257, 40), (300, 20, 257), (1, 3, 3000), (3000, 3, 1)),
    ],
    "transpose": [
        *((0, 5), (5, 0), (1, 1), (1, 70), (70, 1), (3, 4), (15, 17), (16, 16), (33, 17), (65, 63), (129, 257)),
        *((1000, 1001), (4096, 40), (40, 4096), (4097, 2049)),
    ],
}
"""Nothing, one, around registers and tiles; the last are shared among threads, and take several passes."""


def texts() -> Iterator[Any]:
    """Every text that is compiled ahead of time, on every target that is there."""
    for backend in COMPILED:
        targets = [target.name for target in registry.backend(backend).targets() if target.available]
        for kernel, target in product(registry.kernel_names(), targets):
            for variant, text in registry.kernel_texts(kernel, backend).items():
                name = f"{backend}-{target}-{kernel}-{variant}"
                yield pytest.param(text, target, marks=getattr(pytest.mark, backend), id=name)


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("text", "target"), list(texts()))
def test_right_up_to_the_last_element(text: KernelText, target: str, dtype: str, threads: int, offset: int) -> None:
    device, problem = registry.backend(text.backend).open(target, threads), text.problem
    try:
        launch, draw = device.prepare(text, np.dtype(dtype)), np.random.default_rng(5)
    except BackendUnavailable as missing:  # of a build for some instruction sets only
        pytest.skip(missing.reason)
    wrong = {}
    for sizes in SHAPES.get(text.kernel, [problem.default_sizes]):
        *inputs, output = (exact(draw.standard_normal(shape).astype(dtype), offset) for shape in problem.shapes(sizes))
        reference = reference_of(problem, inputs, sizes)
        output[...] = np.nan
        for result in [output, inputs[0]] if problem.in_place else [output]:  # the last call overwrites an input
            launch([*(array.ravel() for array in inputs), result.ravel()], sizes)
            device.wait()
            if reason := check_output(result, reference, problem.rule).reason:
                wrong[sizes] = reason
    assert wrong == {}


def exact(array: Array, offset: int) -> Array:
    """The same elements at the end of a piece of memory of their own, `offset` elements after its begin."""
    memory = np.empty(offset + array.size, array.dtype)
    memory[offset:] = array.ravel()
    return memory[offset:].reshape(array.shape)
