"""Arrays of SYCL and OpenCL, whose CPUs are devices with arrays of their own."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import targets_of
from given_arrays import drawn

import py_backends as pb
from py_backends import registry
from py_backends.contract import Array
from py_backends.functions import call

pytestmark = pytest.mark.stamped

FLOAT32 = np.dtype(np.float32)


class UsmView:
    """An array of a library that allocates USM, such as dpnp's. Strides and offset are counted in elements."""

    def __init__(self, memory: Any, *shape: int, dtype: str = "float32", **how: Any) -> None:
        self.memory, self.shape, self.dtype = memory, shape, np.dtype(dtype)
        self.how = {"strides": None, "offset": 0} | how

    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        address, _ = self.memory.__sycl_usm_array_interface__["data"]
        described = {"data": (address, self.how.get("read_only", False)), "shape": self.shape}
        laid = {name: self.how[name] for name in ("strides", "offset")}
        return self.memory.__sycl_usm_array_interface__ | described | laid | {"typestr": self.dtype.str}

    @property
    def elements(self) -> Array:
        """What lies in it, copied to the host."""
        return np.asarray(self.memory.copy_to_host()).view(self.dtype)


def usm(where: Any, kind: str, elements: Array) -> UsmView:
    """Elements in new USM, of a queue's context and device."""
    from dpctl import memory

    made = getattr(memory, f"MemoryUSM{kind}")(max(1, elements.nbytes), queue=where)
    if elements.size:
        made.copy_from_host(np.ascontiguousarray(elements).reshape(-1).view(np.uint8))
    return UsmView(made, *elements.shape, dtype=str(elements.dtype))


@pytest.mark.sycl
class TestOfSycl:
    @pytest.fixture
    def device(self) -> Any:
        """Intel's CPU, as the functions open it."""
        if "intel-cpu" not in {target.name for target in targets_of("sycl") if target.available}:
            pytest.skip("sycl: Intel's CPU runtime is not here, the device that is known to have USM")
        return call._device(("vecadd", "sycl", None, "intel-cpu", None, type(None)), "float32")

    @pytest.fixture
    def queue(self, device: Any) -> Any:
        """As a caller makes one."""
        from dpctl import SyclQueue

        return SyclQueue(device._device)

    @pytest.mark.parametrize("kind", ["Device", "Shared", "Host"])
    def test_usm_is_used_where_it_lies(self, queue: Any, kind: str, seen: list[Any]) -> None:
        a, b = drawn(5, 7), drawn(7, 3)
        there, out = usm(queue, kind, a), usm(queue, kind, np.zeros((5, 3), np.float32))
        assert pb.matmul(there, b, backend="sycl", variant="lecture", target="intel-cpu", out=out) is out
        assert seen[0].address == there.__sycl_usm_array_interface__["data"][0]
        assert isinstance(seen[1], np.ndarray)
        assert seen[2].address == out.__sycl_usm_array_interface__["data"][0]
        np.testing.assert_array_equal(out.elements.reshape(5, 3), a @ b)

    @pytest.mark.parametrize("kind", ["Device", "Shared", "Host"])
    def test_what_is_changed_in_it_later_is_seen(self, device: Any, queue: Any, kind: str) -> None:
        x, c = usm(queue, kind, np.zeros(100, np.float32)), np.zeros(100, np.float32)
        adopted = device.adopt(x)
        x.memory.copy_from_host(np.full(100, 3, np.float32).view(np.uint8))
        launch = device.prepare(registry.kernel_texts("vecadd", "sycl")["lecture"], FLOAT32)
        launch([adopted.buffer, adopted.buffer, device.allocate(c)], [100])
        device.wait()
        assert set(c) == {6}

    def test_its_array_lives_as_long_as_the_buffer(self, device: Any, queue: Any) -> None:
        x = usm(queue, "Device", drawn(9))
        alive, adopted = weakref.ref(x), device.adopt(x)
        del x
        gc.collect()
        assert alive() is not None
        device.release(adopted.buffer)
        gc.collect()
        assert alive() is None

    def test_results_stay_in_usm(self, device: Any) -> None:
        from dpctl.memory import as_usm_memory

        a, b = drawn(6, 6), drawn(6, 6, seed=4)
        product = pb.matmul(a, b, backend="sycl", variant="lecture", target="intel-cpu", to="device")
        assert as_usm_memory(product).sycl_device == device._device
        assert (product.shape, product.dtype) == ((6, 6), FLOAT32)
        assert product.__sycl_usm_array_interface__["data"] == (product.memory._pointer, False)
        np.testing.assert_array_equal(product.get(), a @ b)
        for threads in (None, 1, 2):
            again = pb.matmul(
                product, b, backend="sycl", variant="lecture", target="intel-cpu", threads=threads, to="device"
            )
            np.testing.assert_array_equal(again.get(), a @ b @ b)
        assert ("(6, 6)" in repr(again), "float32" in repr(again)) == (True, True)
        assert pb.vecadd(drawn(0), drawn(0), backend="sycl", to="device").get().shape == (0,)

    @pytest.mark.usefixtures("device")
    @pytest.mark.parametrize("dtype", registry.problem("vecadd").dtypes)
    def test_results_in_every_format_are_used_again(self, dtype: str) -> None:
        """SYCL's interface of arrays has no name for bfloat16."""
        ones = np.ones(100, dtype)
        twice = pb.vecadd(ones, ones, backend="sycl", to="device")
        sums = pb.vecadd(twice, ones, backend="sycl")
        assert (sums.dtype, sums.tolist()) == (ones.dtype, [3] * 100)

    def test_devices_that_are_no_cpu_have_memory_of_their_own(self, device: Any) -> None:
        other = type(device)(device._device, device._device.max_compute_units)
        other._in_place = False
        assert other.new((3,), FLOAT32).memory.get_usm_type() == "device"
        assert device.new((3,), FLOAT32).memory.get_usm_type() == "shared"

    def test_one_memory_seen_twice(self, queue: Any) -> None:
        """As USM, and as NumPy sees it: vecadd may write over an input, and may not over a part of it."""
        x = usm(queue, "Shared", drawn(20))
        seen_by_numpy = np.frombuffer(x.memory, np.float32)
        expected = 2 * seen_by_numpy
        pb.vecadd(seen_by_numpy, x, backend="sycl", target="intel-cpu", out=x)
        np.testing.assert_array_equal(seen_by_numpy, expected)
        first, last = UsmView(x.memory, 15), UsmView(x.memory, 15, offset=5)
        with pytest.raises(ValueError, match="overlaps a part of an input"):
            pb.vecadd(first, first, backend="sycl", target="intel-cpu", out=last)
        expected = 2 * seen_by_numpy[:15]
        pb.vecadd(first, first, backend="sycl", target="intel-cpu", out=seen_by_numpy[5:])
        np.testing.assert_array_equal(seen_by_numpy[5:], expected)
        square = UsmView(x.memory, 4, 4)
        with pytest.raises(ValueError, match="overlaps an input of matmul"):
            pb.matmul(
                square,
                square,
                backend="sycl",
                variant="lecture",
                target="intel-cpu",
                out=seen_by_numpy[:16].reshape(4, 4),
            )

    def test_work_that_its_library_queued_comes_first(self, queue: Any) -> None:
        n = 2**24
        x, ones = usm(queue, "Shared", np.zeros(n, np.float32)), usm(queue, "Shared", np.ones(n, np.float32))
        copied = queue.memcpy_async(x.memory, ones.memory, ones.memory.nbytes)
        total = pb.vecadd(x, x, backend="sycl", target="intel-cpu")
        copied.wait()
        assert set(np.unique(total)) == {2}

    def test_what_another_context_has_is_refused_unless_the_host_has_it_too(self, device: Any) -> None:
        from dpctl import SyclQueue

        part = SyclQueue(device._device.create_sub_devices(partition=[1])[0])
        x = drawn(9)
        with pytest.raises(TypeError, match="a: it lies in USM of another SYCL context"):
            pb.vecadd(usm(part, "Device", x), x, backend="sycl", target="intel-cpu")
        for kind in ("Shared", "Host"):
            there = usm(part, kind, x)
            np.testing.assert_array_equal(pb.vecadd(there, there, backend="sycl", target="intel-cpu"), 2 * x)

    def test_what_another_device_has_is_refused(self, device: Any) -> None:
        other: Any = SimpleNamespace(get_usm_type=lambda *_: "device", sycl_device=SimpleNamespace(name="GPU 1"))
        with pytest.raises(TypeError, match="it lies on another SYCL device, GPU 1; copy it first"):
            device._check_reach(other)

    @pytest.mark.parametrize(
        ("how", "error", "words"),
        [
            ({"strides": (2,)}, TypeError, "a: its elements do not lie in order"),
            ({"dtype": "int16"}, TypeError, "a must be float32, float64, .* not int16"),
            ({"dtype": "uint8"}, TypeError, "a must be float32, float64, .* not uint8"),
        ],
    )
    def test_unfit_ones(self, queue: Any, how: Any, error: type[Exception], words: str) -> None:
        with pytest.raises(error, match=words):
            pb.vecadd(UsmView(usm(queue, "Shared", drawn(20)).memory, 9, **how), drawn(9), backend="sycl")

    def test_read_only_ones_are_no_outputs(self, queue: Any) -> None:
        out = UsmView(usm(queue, "Shared", drawn(9)).memory, 9, read_only=True)
        with pytest.raises(ValueError, match="out is read-only"):
            pb.vecadd(drawn(9), drawn(9), backend="sycl", target="intel-cpu", out=out)

    def test_offsets_and_strides_of_no_importance(self, device: Any, queue: Any) -> None:
        memory = usm(queue, "Device", drawn(20)).memory
        view = UsmView(memory, 1, 9, strides=(77, 1), offset=5)
        assert device.adopt(view).address == memory._pointer + 20

    def test_empty_ones(self, queue: Any) -> None:
        nothing = UsmView(usm(queue, "Device", drawn(0)).memory, 0)
        assert pb.vecadd(nothing, nothing, backend="sycl", target="intel-cpu").shape == (0,)


@pytest.mark.opencl
class TestOfOpenCl:
    @pytest.fixture(params=["intel-cpu", "pocl"])
    def target(self, request: pytest.FixtureRequest) -> str:
        if request.param not in {target.name for target in targets_of("opencl") if target.available}:
            pytest.skip(f"opencl: {request.param} is not here")
        return str(request.param)

    @pytest.fixture
    def device(self, target: str) -> Any:
        return call._device(("vecadd", "opencl", None, target, None, type(None)), "float32")

    def array(self, device: Any, elements: Array) -> Any:
        """An array of pyopencl in the device's context, made as a caller makes one."""
        from pyopencl.array import to_device

        return to_device(device.new((1,), FLOAT32).queue, elements)

    def test_results_stay_and_are_used_again(self, target: str, seen: list[Any]) -> None:
        from pyopencl.array import Array as ClArray

        a, b = drawn(5, 7), drawn(7, 5)
        product = pb.matmul(a, b, backend="opencl", variant="lecture", target=target, to="device")
        assert type(product) is ClArray
        np.testing.assert_array_equal(product.get(), a @ b)
        again = pb.matmul(product, product, backend="opencl", variant="lecture", target=target, to="device")
        assert [each.address >> 64 for each in seen] == [
            product.base_data.int_ptr,
            product.base_data.int_ptr,
            again.base_data.int_ptr,
        ]
        np.testing.assert_array_equal(again.get(), a @ b @ a @ b)
        assert pb.vecadd(drawn(0), drawn(0), backend="opencl", target=target, to="device").get().shape == (0,)

    def test_arrays_in_its_context_are_used_where_they_lie(self, target: str, device: Any) -> None:
        a, b = drawn(5, 7), drawn(7, 3)
        there, out = self.array(device, a), self.array(device, np.zeros((5, 3), np.float32))
        assert pb.matmul(there, b, backend="opencl", variant="lecture", target=target, out=out) is out
        np.testing.assert_array_equal(out.get(), a @ b)
        np.testing.assert_array_equal(there.get(), a), "which its owner goes on using"
        total = self.array(device, drawn(9))
        pb.vecadd(total, total, backend="opencl", target=target, out=total)
        np.testing.assert_array_equal(total.get(), 2 * drawn(9))
        square = self.array(device, drawn(4, 4))
        with pytest.raises(ValueError, match="overlaps an input of matmul"):
            pb.matmul(square, square, backend="opencl", variant="lecture", target=target, out=square)

    def test_a_buffer_is_a_handle_of_its_own(self, device: Any) -> None:
        there = self.array(device, drawn(9))
        adopted = device.adopt(there)
        assert adopted.buffer.int_ptr == there.base_data.int_ptr
        before = there.base_data.reference_count
        device.release(adopted.buffer)
        assert there.base_data.reference_count == before - 1 >= 1

    def test_parts_of_buffers(self, target: str, device: Any) -> None:
        x = drawn(300)
        there, step = self.array(device, x), device._device.mem_base_addr_align // 8 // 4
        first, last = there[:50], there[step : step + 50]
        np.testing.assert_array_equal(
            pb.vecadd(first, last, backend="opencl", target=target), x[:50] + x[step : step + 50]
        )
        with pytest.raises(TypeError, match="b: it begins 4 bytes behind the start of its buffer"):
            pb.vecadd(first, there[1:51], backend="opencl", target=target)
        with pytest.raises(ValueError, match="overlaps a part of an input"):
            pb.vecadd(first, first, backend="opencl", target=target, out=there[step : step + 50])

    def test_work_that_its_library_queued_comes_first(self, target: str, device: Any) -> None:
        import pyopencl as cl

        ones = np.ones(2**24, np.float32)
        there = self.array(device, np.zeros_like(ones))
        queue = cl.CommandQueue(device._context)
        copied = cl.enqueue_copy(queue, there.base_data, ones, is_blocking=False)
        there.add_event(copied)
        queue.flush()
        assert set(np.unique(pb.vecadd(there, there, backend="opencl", target=target))) == {2}

    def test_what_another_context_has_is_refused(self, target: str, device: Any) -> None:
        import pyopencl as cl
        from pyopencl.array import to_device

        context = cl.Context([device._device])
        there = to_device(cl.CommandQueue(context), drawn(9))
        with pytest.raises(TypeError, match=r"a: it lies in another OpenCL context, .* copy it first with \.get\(\)"):
            pb.vecadd(there, drawn(9), backend="opencl", target=target)

    def test_unfit_ones(self, target: str, device: Any) -> None:
        with pytest.raises(TypeError, match="a: its elements do not lie in order"):
            pb.matmul(
                self.array(device, drawn(7, 5)).T, drawn(7, 3), backend="opencl", variant="lecture", target=target
            )
        with pytest.raises(TypeError, match=r"a must be float32, float64, .* not int16"):
            pb.vecadd(self.array(device, drawn(9, dtype="int16")), drawn(9), backend="opencl", target=target)
        nothing = self.array(device, drawn(0))
        assert pb.vecadd(nothing, nothing, backend="opencl", target=target).shape == (0,)
