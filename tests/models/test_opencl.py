"""What OpenCL's tuned kernels and its device promise beside right results: both forms, edges, memory that is shared."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Iterable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import forms
import launched
import numpy as np
import pytest
from conftest import after_a_change, nightly, targets_of
from faults.table import Change, planted_by

from py_backends import registry
from py_backends.backend._scratch import MOST_IDLE
from py_backends.conformance.trials import of_kernel
from py_backends.contract import Array
from py_backends.kernel_text import KernelText
from py_backends.number_formats import DTYPES
from py_backends.results.check import check_output
from py_backends.results.spec import Sizes

if TYPE_CHECKING:
    from py_backends.backend.opencl import OpenClDevice

pytestmark = pytest.mark.opencl


def devices(form: str | None = None) -> Iterator[Any]:
    """Every CPU that OpenCL finds, with the kernels for a kind of device."""
    for target in targets_of("opencl"):
        if target.available and target.name in {"intel-cpu", "pocl"}:
            yield pytest.param((target.name, form), id=f"{target.name}-{form}" if form else target.name)


@pytest.fixture(scope="module")
def opened() -> dict[Any, OpenClDevice]:
    return {}


@pytest.fixture
def device(request: pytest.FixtureRequest, opened: dict[Any, OpenClDevice]) -> OpenClDevice:
    """The device of a target, opened once for all tests here."""
    from py_backends.backend import opencl

    name, form = request.param
    if request.param not in opened:
        found = opencl._devices()[name]
        opened[request.param] = opencl.OpenClDevice(found, found.max_compute_units, form)
    return opened[request.param]


on_every_cpu = pytest.mark.parametrize("device", list(devices()), indirect=True)
OF_SOURCES = after_a_change("kernels", "py_backends/backend/opencl.py")
in_every_dtype = pytest.mark.parametrize("dtype", DTYPES)


def of_tuned(kernel: str) -> KernelText:
    return registry.kernel_texts(kernel, "opencl")["tuned"]


def wrong(device: OpenClDevice, text: KernelText, shapes: Iterable[Sizes], dtype: str) -> dict[Sizes, str]:
    """Run a source on arrays of each shape; what is wrong with results, where anything is."""
    return launched.wrong(device, device.prepare(text, np.dtype(dtype)), text.problem, shapes, dtype)


@OF_SOURCES
@pytest.mark.parametrize(
    "dtype",
    [each if each in ("float32", "bfloat16") else nightly(each) for each in DTYPES],  # each compiles for seconds
)
@pytest.mark.parametrize("device", list(devices("GPU")), indirect=True)
@pytest.mark.parametrize("text", launched.tuned("opencl"), ids=attrgetter("kernel"))
def test_the_form_for_gpus_is_right_on_a_cpu(
    device: OpenClDevice, text: KernelText, dtype: str, request: pytest.FixtureRequest
) -> None:
    if dtype not in registry.dtypes(text):
        pytest.skip(f"{text.kernel} has no {dtype}")
    name = request.node.callspec.params["device"][0]
    target = next(each for each in targets_of("opencl") if each.name == name)
    with forms.tried(request, text, target, f"GPU-{dtype}") as now:
        assert not now or wrong(device, text, launched.telling_sizes(text.problem), dtype) == {}


@OF_SOURCES
@in_every_dtype
@on_every_cpu
def test_one_off_from_blocks_and_passes(device: OpenClDevice, dtype: str) -> None:
    shapes = [(97, 129, 513), (95, 127, 511), (1, 1, 1100), (193, 2, 3)]
    assert wrong(device, of_tuned("matmul"), shapes, dtype) == {}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("variant", ["lecture", "tuned"])
@on_every_cpu
def test_every_number_of_16_bits_is_widened_and_narrowed(device: OpenClDevice, variant: str, dtype: str) -> None:
    """Alone by the lecture's text, in vectors by the tuned one: as itself, and added to others near to it and far."""
    launch = device.prepare(registry.kernel_texts("vecadd", "opencl")[variant], np.dtype(dtype))
    every, draw = np.arange(2**16, dtype=np.uint16), np.random.default_rng(9)
    minus_zero = np.full_like(every, 1 << 15)
    for bits in (minus_zero, draw.permutation(every), every ^ minus_zero ^ draw.integers(64, size=2**16, dtype="u2")):
        a, b = every.view(dtype), bits.view(dtype)
        c = np.zeros_like(a)
        buffers = [device.upload(array) for array in (a, b, c)]
        launch(buffers, c.shape)
        device.wait()
        device.download(buffers[-1], c)
        for buffer in buffers:
            device.release(buffer)
        assert check_output(c, of_tuned("vecadd").problem.reference([a, b]), "bitwise").reason is None


@on_every_cpu
def test_vectors_are_no_longer_than_the_compiler_uses(device: OpenClDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """PoCL's wheel says 64 bytes on a Zen 4, compiles for Zen 3, and aborts where a function takes such a vector."""
    from py_backends.backend import opencl

    monkeypatch.setattr(opencl, "_WHAT_COMPILER_USES", f"kernel void {opencl._AVX_ALONE}(void) {{}}")
    narrow = opencl.OpenClDevice(device._device, 2)
    for name in DTYPES:
        sums = of_tuned("matmul").problem.sum_dtype(np.dtype(name))
        lanes, _ = narrow._lanes_and_cache(sums)
        assert lanes * sums.itemsize <= 32
    for text in (of_tuned("vecadd"), of_tuned("matmul")):
        for name in registry.dtypes(text):
            assert wrong(narrow, text, of_kernel(text.kernel).few, name) == {}


@OF_SOURCES
@pytest.mark.parametrize("device", [each for each in devices() if each.id == "pocl"], indirect=True)
def test_sources_compile_without_a_warning(device: OpenClDevice) -> None:
    """PoCL loses the kernels of a program with warnings where several processes build it at the same time."""
    import pyopencl as cl

    every = [text for kernel in registry.kernel_names() for text in registry.kernel_texts(kernel, "opencl").values()]
    for text in every:
        names = [name for name, _ in text.stages("CPU").kernels]
        for dtype in registry.dtypes(text):
            program = device._program(text, np.dtype(dtype), names)
            log = program.get_build_info(device._device, cl.program_build_info.LOG)
            assert "warning" not in log


@pytest.mark.slow
@pytest.mark.parametrize("change", planted_by("opencl"), ids=attrgetter("name"))
def test_one_changed_operator_is_seen(change: Change, tmp_path: Path) -> None:
    """Of the tuned matmul."""
    from py_backends.backend import opencl

    found = next(iter(opencl._devices().values()))
    device = opencl.OpenClDevice(found, found.max_compute_units, change.form)
    shapes = [(25, 129, 30), (7, 13, 1100)]
    assert wrong(device, change.faulty_text(tmp_path), shapes, "float32")


@on_every_cpu
def test_a_function_of_another_name_is_told(device: OpenClDevice, tmp_path: Path) -> None:
    text = registry.kernel_texts("vecadd", "opencl")["lecture"]
    renamed = tmp_path / text.path.name
    renamed.write_text(text.text.replace("void vecadd(", "void add("), encoding="utf-8")
    with pytest.raises(ValueError, match="the source has no kernel of the name vecadd: "):
        device.prepare(dataclasses.replace(text, path=renamed), np.dtype("float32"))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@on_every_cpu
def test_streamed_vectors_are_right_wherever_they_begin(device: OpenClDevice, dtype: str, tmp_path: Path) -> None:
    """As if the cache held nothing; PoCL knows of one that would take gigabytes to exceed."""
    text = of_tuned("vecadd")
    always = tmp_path / text.path.name
    always.write_text(text.text.replace("> CACHE_BYTES", "> 0"), encoding="utf-8")
    launch = device.prepare(dataclasses.replace(text, path=always), np.dtype(dtype))
    size, last = 40_000, 34  # a whole vector of 64 bytes and more
    memory = np.random.default_rng(1).standard_normal((3, size)).astype(dtype)
    for begin in range(last + 1):
        a, b, c = memory[0, begin:], memory[1, last - begin : size - begin], memory[2]
        c[:] = np.nan
        n = size - last - begin
        buffers = [device.upload(array) for array in (a[:n], b[:n], c[begin : begin + n])]
        launch(buffers, (n,))
        device.wait()
        for buffer in buffers:
            device.release(buffer)
        np.testing.assert_array_equal(c[begin : begin + n], a[:n] + b[:n])
        assert np.isnan(c[:begin]).all()
        assert np.isnan(c[begin + n :]).all()


@on_every_cpu
@pytest.mark.parametrize("readable_only", [False, True])
def test_buffers_stand_on_the_callers_memory(device: OpenClDevice, readable_only: bool) -> None:
    import pyopencl as cl

    for begin in (0, 1, 3, 16):
        array = np.arange(5000, dtype=np.float32)[begin:]
        array.flags.writeable = not readable_only
        buffer = device.upload(array)
        shown, _ = cl.enqueue_map_buffer(device._queue, buffer, cl.map_flags.READ, 0, array.shape, array.dtype)
        assert shown.ctypes.data == array.ctypes.data
        shown.base.release(device._queue)
        device.release(buffer)


@on_every_cpu
def test_what_the_host_changes_between_launches_is_seen(device: OpenClDevice) -> None:
    launch = device.prepare(of_tuned("vecadd"), np.dtype(np.float32))
    a, b, c = (np.zeros(1000, np.float32) for _ in range(3))
    buffers = [device.upload(a), device.upload(b), device.allocate(c)]
    for value in (1, 2):
        a[:] = value
        launch(buffers, (1000,))
        device.wait()
        device.download(buffers[-1], c)
        assert (c == value).all()


@on_every_cpu
def test_memory_lives_as_long_as_its_buffer(device: OpenClDevice) -> None:
    array: Array = np.arange(1000.0)
    alive = weakref.ref(array)
    buffer = device.upload(array)
    del array
    assert alive() is not None
    device.release(buffer)
    del buffer
    assert alive() is None


@on_every_cpu
def test_scratch_memory_is_kept_and_given_up(device: OpenClDevice) -> None:
    small = device._scratch.hold(1000)
    assert device._scratch.hold(900) is small
    large = device._scratch.hold(MOST_IDLE + 2**20)
    assert large is not small
    assert large.size > MOST_IDLE
    assert device._scratch.hold(MOST_IDLE // 2) is large
    assert device._scratch.hold(2**20) is not large, "what was taken for one large product is not held for ever"
    assert device._scratch.hold(0).size > 0


@pytest.mark.parametrize("dtype", ["float16", "int8", "float32", "float64"])
@on_every_cpu
def test_scratch_memory_has_room_for_sums(device: OpenClDevice, dtype: str) -> None:
    """Not for elements, which may be narrower."""
    text, sizes = of_tuned("matmul"), (200, 300, 400)
    device._scratch.pieces.clear()
    assert wrong(device, text, [sizes], dtype) == {}
    elements = text.stages("CPU").scratch_elements(text.named_sizes(sizes))
    assert elements is not None
    assert device._scratch.pieces[0].size == elements * text.problem.sum_dtype(np.dtype(dtype)).itemsize


@on_every_cpu
def test_a_dot_product_takes_little_beside_its_vectors(device: OpenClDevice) -> None:
    device._scratch.pieces.clear()
    assert wrong(device, of_tuned("matmul"), [(1, 1, 100_003)], "float32") == {}
    assert device._scratch.pieces[0].size <= 2 * 100_003 * 4


@on_every_cpu
def test_scratch_memory_that_no_device_has_is_a_memory_error(device: OpenClDevice) -> None:
    with pytest.raises(MemoryError, match="GiB"):
        device._scratch.hold(2**60)
