"""SYCL's memory: in the caller's arrays on a CPU that reaches them, in memory of its own elsewhere."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import py_backends as pb
from py_backends import _discovery
from py_backends._contract import Launch

FLOAT32 = np.dtype(np.float32)

pytestmark = pytest.mark.sycl


class Caller(np.ndarray):
    """An array that can be watched."""


@pytest.fixture(scope="module")
def device() -> Any:
    """The CPU of Intel's runtime, in whose memory all arrays already are."""
    targets = {target.name for target in _discovery.backend("sycl").targets() if target.available}
    if "intel-cpu" not in targets:
        pytest.skip("sycl: Intel's CPU runtime is not here, the device that is known to work in place")
    return _discovery.backend("sycl").open("intel-cpu", 10_000)


def vecadd(device: Any) -> Launch:
    launch: Launch = device.prepare(_discovery.kernel_texts("vecadd", "sycl")["lecture"], FLOAT32)
    return launch


def test_nothing_is_copied_to_a_cpu(device: Any) -> None:
    a = np.arange(10, dtype=FLOAT32)
    a.flags.writeable = False
    unaligned = np.frombuffer(b"\0" * 41, np.uint8)[1:].view(FLOAT32)
    for array in (a, a[3:], a[:0], unaligned):
        assert device.upload(array).address == device.allocate(array).address == array.ctypes.data


def test_a_buffer_keeps_the_array_until_it_is_released(device: Any) -> None:
    array = np.ones(5, FLOAT32).view(Caller)
    alive, buffer = weakref.ref(array), device.upload(array)
    del array
    gc.collect()
    assert alive() is not None
    device.release(buffer)
    assert alive() is None


def test_released_memory_reaches_no_kernel(device: Any) -> None:
    a, b, c = (device.upload(np.ones(5, FLOAT32)) for _ in "abc")
    device.release(b)
    with pytest.raises(AssertionError, match="released"):
        vecadd(device)([a, b, c], [5])


def test_results_are_there_after_the_download_at_the_latest(device: Any) -> None:
    """As after a copy, which waits for what was queued before it: hence a wait that does not wait is seen."""
    a, b = np.random.default_rng(3).standard_normal((2, 10_000_019), FLOAT32)
    c = np.full_like(a, np.nan)
    buffers = [device.upload(a), device.upload(b), device.allocate(c)]
    launch = vecadd(device)
    launch(buffers, [c.size])
    device.download(buffers[-1], c)
    assert np.array_equal(c, a + b)


@pytest.mark.usefixtures("device")
def test_a_result_is_written_where_the_caller_wants_it() -> None:
    a = np.arange(12.0)
    a.flags.writeable = False
    c = np.full(14, 7.0)
    pb.vecadd(a, a, backend="sycl", target="intel-cpu", out=c[1:13])
    assert np.array_equal(c, [7, *(2 * a), 7])


def test_other_devices_have_memory_of_their_own(device: Any) -> None:
    """A CPU is made to work as a GPU does, since none may be at hand."""
    other = type(device)(device._device, device._device.max_compute_units)
    other._in_place = False
    a = np.arange(1000, dtype=FLOAT32)
    c = np.full_like(a, np.nan)
    buffers = [other.upload(a), other.upload(a), other.allocate(c)]
    assert buffers[0].address != a.ctypes.data
    vecadd(other)(buffers, [a.size])
    other.wait()
    assert np.isnan(c).all()
    other.download(buffers[-1], c)
    assert np.array_equal(c, 2 * a)
    assert other.upload(a[:0]).address != 0, "there is no empty memory"
    for buffer in buffers:
        other.release(buffer)
