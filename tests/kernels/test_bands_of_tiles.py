"""Models of tiles: where bands of tiles end. The suite's cases are smaller than a band of tuned matmul."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import targets_of

from py_backends import registry
from py_backends.harness.case import Case
from py_backends.workers.runner import Runner


@pytest.mark.parametrize(
    ("backend", "dtype"),
    [
        pytest.param("triton", "float32", marks=pytest.mark.triton),
        pytest.param("cutile", "float16", marks=pytest.mark.cutile),
    ],
)
def test_every_tile_of_matmul_is_computed_where_bands_end(backend: str, dtype: str) -> None:
    target = targets_of(backend)[0]
    text = registry.kernel_texts("matmul", backend)["tuned"]
    runner, case = Runner(backend, target, 1), Case(text.problem, (1200, 300, 20), np.dtype(dtype), seed=1)
    try:
        runner.run(text, case)
        assert case.check_output().reason is None
    finally:
        runner.close()
        case.close()
