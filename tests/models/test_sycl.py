"""SYCL's memory, in the caller's arrays on a CPU that reaches them, and its kernels in the forms for other devices."""

from __future__ import annotations

import ctypes
import gc
import re
import weakref
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NoReturn

import forms
import launched
import numpy as np
import pytest
from commands import CLONE, run_python
from conftest import after_a_change, nightly, targets_of

import py_backends as pb
from py_backends import registry
from py_backends.backend import _amx, _sycl, sycl
from py_backends.backend.sycl import SyclDevice
from py_backends.contract import Buffer, Launch, Target
from py_backends.errors import BackendUnavailable
from py_backends.kernel_text import KernelText
from py_backends.results.spec import Sizes
from py_backends.system import cpu

OF_FORMS = after_a_change("kernels", "py_backends/backend/sycl.py", "py_backends/backend/_sycl.py")
FLOAT32, OTHERS = np.dtype(np.float32), nightly(np.dtype(np.float16))
EVERYTHING = 10_000
"""More threads than there are."""
BEHIND, OF_NAN = 1 << 16, 0xFF
"""Bytes behind scratch memory, and what each of them is: of such bytes is NaN."""
FORMS: dict[str, tuple[str, int | None]] = {
    "as here": ("CPU", None),
    "vectors of 16 bytes, streamed": ("CPU", 16),
    "vectors of 32 bytes, streamed": ("CPU", 32),
    "for a GPU": ("GPU", None),
}
"""Forms of the tuned kernels: the kind of device, and the bytes of its vectors where they are not the true ones."""

pytestmark = pytest.mark.sycl


class TestTiles:
    """The target whose driver has to be told that the CPU has tiles."""

    @pytest.fixture
    def target(self, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Target]:
        """The target where the system lists tiles, or not, and where there are devices."""

        def made(listed: bool, *devices: str) -> Target:
            monkeypatch.setattr(_amx, "listed", lambda: listed)
            found = _sycl.devices("sycl")
            monkeypatch.setattr(_sycl, "devices", lambda _: dict.fromkeys(devices, found["intel-cpu"]))
            return sycl.Backend().targets()[-1]

        return made

    @pytest.mark.usefixtures("device")
    def test_is_last_and_has_three_formats_of_matmul(self, target: Callable[..., Target]) -> None:
        amx = target(True, "intel-cpu")
        assert (amx.name, amx.available, amx.dtypes) == ("amx", True, {"matmul/tuned": ("float16", "bfloat16", "int8")})
        assert amx.environment == {"CL_CONFIG_CPU_TARGET_ARCH": "sapphirerapids"}

    @pytest.mark.usefixtures("device")
    def test_what_the_cpu_lacks_needs_another(self, target: Callable[..., Target]) -> None:
        amx = target(False, "intel-cpu")
        assert (amx.available, "CPU" in (amx.fix or "")) == (False, True)
        assert re.findall(r"AMX-\w+", amx.reason or "") == ["AMX-TILE", "AMX-BF16", "AMX-INT8"]
        assert not amx.environment, "no worker tries to open it"

    @pytest.mark.usefixtures("device")
    def test_other_drivers_multiply_no_tiles(self, target: Callable[..., Target]) -> None:
        amx = target(True, "pocl")
        assert (amx.available, "Intel's runtime" in (amx.reason or "")) == (False, True)
        with pytest.raises(BackendUnavailable, match="Intel's runtime"):
            sycl.Backend().open("amx", 1)

    def test_is_missing_with_dpctl(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def none(_: str) -> NoReturn:
            raise BackendUnavailable("dpctl is not installed", "install it")

        monkeypatch.setattr(_sycl, "devices", none)
        cpu, amx = sycl.Backend().targets()
        assert (amx.name, amx.reason, amx.fix) == ("amx", cpu.reason, cpu.fix)

    @pytest.mark.usefixtures("device")
    def test_what_the_system_refuses_is_not_opened(
        self, target: Callable[..., Target], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        target(True, "intel-cpu")
        monkeypatch.setattr(_amx, "refusal", lambda: "refused")
        with pytest.raises(BackendUnavailable, match="refused"):
            sycl.Backend().open("amx", 1)

    def test_is_listed_where_the_system_lists_all_three_features(self, tmp_path: Path, monkeypatch: Any) -> None:
        told = tmp_path / "cpuinfo"
        monkeypatch.setattr(cpu, "_CPUS", told)
        assert not _amx.listed(), "no Linux"
        for flags, there in ("amx_bf16 avx amx_tile amx_int8", True), ("amx_tile amx_bf16 avx", False):
            told.write_text(f"model name : Made-up\nflags\t\t: fpu {flags}\n\n")
            assert _amx.listed() == there
        told.write_text("processor : 0\n")
        assert not _amx.listed()


class Caller(np.ndarray):
    """An array that can be watched."""


@pytest.fixture(scope="module")
def device() -> Any:
    """The CPU of Intel's runtime, in whose memory all arrays already are."""
    targets = {target.name for target in registry.backend("sycl").targets() if target.available}
    if "intel-cpu" not in targets:
        pytest.skip("sycl: Intel's CPU runtime is not here, the device that is known to work in place")
    return registry.backend("sycl").open("intel-cpu", EVERYTHING)


def vecadd(device: Any) -> Launch:
    launch: Launch = device.prepare(registry.kernel_texts("vecadd", "sycl")["lecture"], FLOAT32)
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


@pytest.mark.parametrize("in_place", [True, False])
def test_memory_is_freed_after_what_still_runs(device: Any, monkeypatch: pytest.MonkeyPatch, in_place: bool) -> None:
    """An interrupted call releases before its kernel has ended, and freeing USM does not wait for it."""
    monkeypatch.setattr(device, "_in_place", in_place)
    waited: list[bool] = []
    buffer = device.allocate(np.ones(5, FLOAT32))
    monkeypatch.setattr(device, "wait", lambda: waited.append(buffer.owner is not None))
    device.release(buffer)
    assert waited == [True]


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


class Told(SyclDevice):
    """A device whose kernels are told that its vectors have so many bytes, and that its cache holds nothing."""

    vector_bytes = 0

    def _lanes_and_cache(self, sums: np.dtype[Any]) -> tuple[int, int]:
        return self.vector_bytes // sums.itemsize, 0


def in_form(device: Any, form: str) -> SyclDevice:
    """The same CPU, for which kernels are written in another way."""
    kind, vector_bytes = FORMS[form]
    if vector_bytes is None:
        return SyclDevice(device._device, EVERYTHING, kind)
    told = Told(device._device, EVERYTHING, kind)
    told.vector_bytes = vector_bytes
    return told


@OF_FORMS
@pytest.mark.parametrize("dtype", [FLOAT32, nightly(np.dtype(np.float64)), OTHERS], ids=str)
@pytest.mark.parametrize("text", launched.tuned("sycl"), ids=attrgetter("kernel"))
@pytest.mark.parametrize("form", FORMS)
def test_tuned_kernels_are_right_in_every_form(
    device: Any, form: str, text: KernelText, dtype: np.dtype[Any], request: pytest.FixtureRequest
) -> None:
    """With NaN in what earlier calls left, and guard zones behind all arrays, scratch memory among them."""
    if dtype.name not in registry.dtypes(text):
        pytest.skip(f"{text.kernel} has no {dtype}")
    with forms.tried(request, text, target(), f"{form}-{dtype}") as now:
        assert not now or wrong(in_form(device, form), FORMS[form][0], text, dtype) == {}


def target() -> Target:
    return next(each for each in targets_of("sycl") if each.name == "intel-cpu")


def wrong(device: SyclDevice, kind: str, text: KernelText, dtype: np.dtype[Any]) -> dict[Sizes, str]:
    """What is wrong with results, where anything is."""
    stages, launch = text.stages(kind), device.prepare(text, dtype)

    def after_others(buffers: Sequence[Buffer], sizes: Sequence[int]) -> None:
        elements = stages.scratch_elements(text.named_sizes(sizes))
        size = (elements or 0) * text.problem.sum_dtype(dtype).itemsize
        memory = device._scratch.hold(size + BEHIND)
        ctypes.memset(memory.address, OF_NAN, memory.size)
        launch(buffers, sizes)
        device.wait()
        assert set(ctypes.string_at(memory.address + size, BEHIND)) == {OF_NAN}, f"past its scratch memory at {sizes}"

    sizes = launched.telling_sizes(text.problem)
    return launched.wrong(device, after_others, text.problem, sizes, dtype.name)


@pytest.mark.parametrize("dtype", [FLOAT32, OTHERS], ids=str)
@pytest.mark.parametrize("offset", range(4))
def test_vectors_may_begin_anywhere(device: Any, offset: int, dtype: np.dtype[Any]) -> None:
    """Where stores past the cache need addresses that are aligned."""
    streaming = in_form(device, "vectors of 32 bytes, streamed")
    launch = streaming.prepare(registry.kernel_texts("vecadd", "sycl")["tuned"], dtype)
    a, b = np.random.default_rng(5).standard_normal((2, 70_000)).astype(dtype)
    for count in (*range(40), 65_536, 65_550):
        c = np.full(70_000, 7, dtype)
        buffers = [streaming.upload(a[3:]), streaming.upload(b[1:]), streaming.allocate(c[offset:])]
        launch(buffers, [count])
        streaming.wait()
        assert np.array_equal(c[offset : offset + count], a[3 : 3 + count] + b[1 : 1 + count])
        assert (c[:offset] == 7).all()
        assert (c[offset + count :] == 7).all()


BEFORE_WALLS = """
import sys
import launched, numpy
from py_backends.backend import _sycl
from py_backends.backend.sycl import SyclDevice
from py_backends.number_formats import number_format

device, kernel = SyclDevice(_sycl.devices("")["intel-cpu"], 2, sys.argv[1]), sys.argv[2]
(text,) = (text for text in launched.tuned("sycl") if text.kernel == kernel)

def before_walls(case):
    print("at", case.sizes, flush=True)
    return launched.before_walls(case)

sizes = launched.telling_sizes(text.problem)
launch = device.prepare(text, numpy.dtype("float32"))
wrong = launched.wrong(device, launch, text.problem, sizes, "float32", before_walls)
sys.exit(str(wrong) if wrong else 0)
"""


@OF_FORMS
@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("text", launched.tuned("sycl"), ids=attrgetter("kernel"))
@pytest.mark.parametrize("kind", ["CPU", "GPU"])
def test_nothing_is_read_or_written_past_an_array(kind: str, text: KernelText, request: pytest.FixtureRequest) -> None:
    """Not even where the result would be right: what lies there need not be memory."""
    with forms.tried(request, text, target(), f"{kind}-before-unreadable-memory") as now:
        if now:
            run = run_python("-c", BEFORE_WALLS, kind, text.kernel, path=[CLONE / "tests"])
            assert run.returncode == 0, f"{run.stdout[-100:]}{run.stderr}"
