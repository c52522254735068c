"""The compiled kernels on arrays that end where their memory does, at every kind of edge.

Workers share memory with the harness, in which AddressSanitizer sees no ends. Here arrays are what `malloc` gave, as
they are to the Python functions, so that under that instrument each access past an array is seen. Without one this
shows that results are right with any number of threads, and for arrays that are not aligned.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import launched
import numpy as np
import pytest

from py_backends import _compiled, registry
from py_backends.contract import Array
from py_backends.errors import BackendUnavailable
from py_backends.kernel_text import KernelText
from py_backends.results.check import check_output, references_of

pytestmark = pytest.mark.slow

STUBS = Path(_compiled.__file__).parent
COMPILED = [name for name in registry.backend_names() if (STUBS / f"{name}.pyi").is_file()]
"""The backends that are modules of ours."""


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
    for sizes in launched.telling_sizes(problem):
        *shapes, of_result = problem.shapes(sizes)
        inputs = [exact(draw.standard_normal(shape).astype(dtype), offset) for shape in shapes]
        output = exact(np.empty(of_result, problem.result_dtype(np.dtype(dtype))), offset)
        (reference,) = references_of(problem, inputs, sizes, np.dtype(dtype))
        output.reshape(-1).view(np.uint8)[:] = 0xFF  # no number, or -1
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
