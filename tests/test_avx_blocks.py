"""Where a has several blocks, tiles of the first one pack the panels of b. The suite's matrices have one block of a."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import targets_of

import py_backends as pb

ROWS = 700
"""Several blocks of a in float32, up to a second-level cache of 8 MiB."""


@pytest.mark.avx
@pytest.mark.parametrize("columns", [16, 48, 192, 200, 383], ids="{} columns".format)
@pytest.mark.parametrize("depth", [1021, 2100])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_all_panels_of_b_are_packed_whole(dtype: str, depth: int, columns: int) -> None:
    generator = np.random.default_rng(1)
    a, b = (generator.integers(-8, 9, shape).astype(dtype) for shape in ((ROWS, depth), (depth, columns)))
    exact = a.astype(np.float64) @ b.astype(np.float64)  # sums of small integers are exact in either format
    targets = [each.name for each in targets_of("avx") if each.available and each.name != "amx"]
    assert targets
    for target in targets:
        c = pb.matmul(a, b, backend="avx", target=target, threads=1)
        np.testing.assert_array_equal(c, exact, err_msg=target)
