"""Tuned sources of vecadd add two elements of 16 bits within a wider word. So all elements are added to many others."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from conftest import has_device, skip_or_fail, targets_of

import py_backends as pb
from py_backends import registry
from py_backends.contract import Array
from py_backends.system.caches import effective_cache

pytestmark = pytest.mark.slow

TUNED = [
    pytest.param(name, marks=getattr(pytest.mark, name))
    for name in registry.backend_names()
    if "tuned" in registry.kernel_texts("vecadd", name)
]
ELEMENTS = 1 << 16
SIGN = 0x8000


def pairs(dtype: np.dtype, rows: int) -> tuple[Array, Array]:
    """Every element in each row, in an order of its own, and what is added to it.

    In every other row that is drawn. In the rest it is almost the opposite, so that leading digits cancel.
    """
    generator = np.random.default_rng(1)
    x = np.stack([generator.permutation(ELEMENTS).astype(np.uint16) for _ in range(rows)])
    y = generator.integers(0, ELEMENTS, x.shape, np.uint16)
    y[1::2] = (x[1::2] ^ SIGN) + generator.integers(-40, 41, x[1::2].shape).astype(np.uint16)
    return x.ravel().view(dtype), y.ravel().view(dtype)


def assert_same_bits(result: Array, expected: Array) -> None:
    """Any NaN is as good as any other."""
    differ = (result.view(np.uint16) != expected.view(np.uint16)) & ~(np.isnan(result) & np.isnan(expected))
    assert not differ.any(), [int(each) for each in np.flatnonzero(differ)[:5]]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("backend", TUNED)
def test_sums_are_right_bit_for_bit(backend: str, dtype: type, pytestconfig: pytest.Config) -> None:
    """By stores past the caches and by ordinary ones, of arrays that begin one element after a line."""
    if not has_device(backend):
        skip_or_fail(pytestconfig, backend, f"{targets_of(backend)[0].reason}")
    beyond_the_caches = effective_cache() // (3 * 2 * ELEMENTS) + 2
    x, y = pairs(np.dtype(dtype), beyond_the_caches)
    with np.errstate(all="ignore"):
        expected = x + y
    source = registry.kernel_texts("vecadd", backend)["tuned"]
    real = [target for target in targets_of(backend) if target.available and not target.emulated]
    targets = [target.name for target in real if x.dtype.name in registry.dtypes(source, target)]
    assert targets
    stored = min(4 * ELEMENTS, effective_cache() // (3 * 2)) // 2 * 2 - 1
    for target in targets:
        for part in slice(1, None), slice(1, stored + 1):
            out = np.zeros_like(x)[part]
            pb.vecadd(x[part], y[part], backend=backend, variant="tuned", target=target, out=out)
            assert_same_bits(out, expected[part])
