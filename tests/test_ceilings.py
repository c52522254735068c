"""What the ceilings are measured with computes what it says; how fast it is, no test asks."""

from __future__ import annotations

import numpy as np
import pytest

from py_backends import _compiled
from py_backends._contract import BackendUnavailable
from py_backends.harness import ceilings

DTYPES = [np.dtype("float32"), np.dtype("float64")]


@pytest.fixture(autouse=True)
def _compiled_here() -> None:
    try:
        _compiled.load("ceilings")
    except BackendUnavailable as missing:
        pytest.skip(missing.reason)


def kernels(name):
    here = ceilings.instruction_sets()
    return [
        each for each in _compiled.load("ceilings").kernels() if each.kernel == name and each.instruction_set in here
    ]


@pytest.mark.parametrize("name", ["vecadd_streamed", "vecadd_stored"])
@pytest.mark.parametrize("elements", [0, 1, 15, 16, 17, 1000, 100_003])
@pytest.mark.parametrize("offset", [0, 1])
def test_additions_are_right_at_any_length_and_alignment(name: str, elements: int, offset: int) -> None:
    for kernel in kernels(name):
        a, b = np.random.default_rng(1).standard_normal((2, elements + offset)).astype(kernel.dtype)
        c = np.full(elements + offset + 1, np.nan, kernel.dtype)
        kernel([a[offset:], b[offset:], c[offset:-1]], [elements], 2)
        assert np.array_equal(c[offset:-1], a[offset:] + b[offset:])
        assert np.isnan(c[-1])


@pytest.mark.parametrize("threads", [1, 3])
def test_every_thread_multiplies_and_adds(threads: int) -> None:
    for kernel in kernels("multiply_add"):
        sums = np.full(threads, np.nan, kernel.dtype)
        kernel([np.array([0.5, 1], kernel.dtype), sums], [192 * 100], threads)
        assert np.allclose(sums, 12 * 2), "12 chains, each of which tends to 1 / (1 - 0.5)"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rates_are_those_of_the_instruction_set_and_threads(dtype: np.dtype) -> None:
    for instruction_set in ceilings.instruction_sets():
        assert ceilings.MultiplyAdds(dtype, 1, instruction_set).flops_per_second(seconds=0.001) > 0
    for streamed in True, False:
        additions = ceilings.StreamedAdditions(dtype, 1000, 2, streamed=streamed)
        assert additions.bytes == 3 * 1000 * dtype.itemsize
        assert additions.bytes_per_second(2) > 0
