"""Times by the devices' own events, flushed caches and first launches: that each means what it says."""

from __future__ import annotations

import itertools
import os
import re
import threading
import timeit
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pytest
from commands import run_command, run_here
from conftest import targets_of

import py_backends as pb
from py_backends import contract, registry
from py_backends.backend import cuda as cuda_backend
from py_backends.backend import numba_cuda
from py_backends.contract import Array, Buffer, Device, Target
from py_backends.harness.case import Case
from py_backends.harness.running_row import RunningRow
from py_backends.kernel_text import KernelText
from py_backends.results.report import Report
from py_backends.results.spec import Spec
from py_backends.system import caches
from py_backends.workers import flush as flushing
from py_backends.workers.runner import Runner, Sample, _arguments
from py_backends.workers.session import Launched, Session, _medians

FLOAT32 = np.dtype(np.float32)
SEVERAL_MILLISECONDS = {"lecture": (256, 256, 256), "tuned": (768, 768, 768)}
"""The sizes at which a product takes so long, or longer, by variant."""


def devices_with_events() -> Iterator[object]:
    for backend in ("opencl", "sycl"):
        for target in targets_of(backend):
            if target.available and not target.environment:
                mark = getattr(pytest.mark, backend)
                yield pytest.param((backend, target), id=f"{backend}-{target.name}", marks=mark)


@dataclass
class OnDevice:
    """A kernel on an opened device, with its buffers."""

    device: Device
    launch: contract.Launch
    buffers: list[Buffer]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, backend: str, target: Target, text: KernelText, sizes: tuple[int, ...], *, profiled: bool) -> OnDevice:
        device = registry.backend(backend).open(target.name, 2)
        device.profiled = profiled
        arrays = [np.ones(int(np.prod(shape)), FLOAT32) for shape in text.problem.shapes(sizes)]
        return cls(device, device.prepare(text, FLOAT32), [device.upload(array) for array in arrays], sizes)

    def run(self) -> tuple[float, float | None]:
        """Seconds by the clock, and by events."""
        begin = perf_counter()
        self.launch(self.buffers, self.sizes)
        self.device.wait()
        return perf_counter() - begin, self.device.event_seconds()


@pytest.mark.parametrize("where", list(devices_with_events()))
@pytest.mark.parametrize("variant", ["lecture", "tuned"])
def test_events_agree_with_the_clock(where: tuple[str, Target], variant: str) -> None:
    """They lie inside it; and a kernel of milliseconds, several stages or one, is most of what the clock sees."""
    text = registry.kernel_texts("matmul", where[0])[variant]
    kernel = OnDevice.of(*where, text, SEVERAL_MILLISECONDS[text.variant], profiled=True)
    kernel.run()
    times = [kernel.run() for _ in range(7)]
    assert all(events is not None and 0 < events <= clock for clock, events in times)
    assert max((events or 0) / clock for clock, events in times) > 0.3


@pytest.mark.parametrize("where", list(devices_with_events()))
def test_events_span_all_kernels_of_a_launch(where: tuple[str, Target]) -> None:
    """The time of a launch is longer than that of its last kernel alone, which begins when the others have ended."""
    text = registry.kernel_texts("matmul", where[0])["tuned"]
    kernel = OnDevice.of(*where, text, SEVERAL_MILLISECONDS[text.variant], profiled=True)
    kept: Any = kernel.device
    stages = text.stages(kept._form).kernels
    if len(stages) < 2:
        pytest.skip("the text has one kernel for this device")
    _, whole = kernel.run()
    events = list(kept._of_thread.events)
    assert len(events) == len(stages)
    kept._of_thread.events = events[-1:]
    last = kernel.device.event_seconds()
    kept._of_thread.events = events[:1]
    first = kernel.device.event_seconds()
    assert whole is not None
    assert last is not None
    assert first is not None
    assert whole >= (first + last) * (1 - 1e-9)  # they may touch, and sums are rounded


@pytest.mark.parametrize("where", list(devices_with_events()))
def test_a_device_that_was_not_told_to_keeps_no_times(where: tuple[str, Target]) -> None:
    text = registry.kernel_texts("vecadd", where[0])["lecture"]
    assert OnDevice.of(*where, text, (1000,), profiled=False).run()[1] is None


def test_devices_without_events_are_timed_by_the_clock() -> None:
    text = registry.kernel_texts("vecadd", "numpy")["lecture"]
    kernel = OnDevice.of("numpy", targets_of("numpy")[0], text, (1000,), profiled=True)
    assert kernel.run()[1] is None
    assert _medians([Launched(2.0, None, None)] * 3) == {"kernel": 2.0, "clock": None, "together": 6.0}


def settled(drains: Sequence[float]) -> RunningRow:
    """A row of launches that take a device next to nothing, and the host its time, with downloads that take longer."""
    later = itertools.cycle(drains)
    case: Any = None
    text = registry.kernel_texts("vecadd", "opencl")["lecture"]
    spec = Spec("vecadd", "opencl", "one", "lecture", "float32", (1000,))

    def sample(*_: Any, **__: Any) -> Sample:
        return Sample(upload=0.0, kernel=1e-7, download=0.0, end_to_end=1e-4, drain=next(later), clock=1e-4)

    runner: Any = SimpleNamespace(cold=False, sample=sample)
    timed = RunningRow(spec, Target("one"), text, sizes=spec.sizes, status="ok").on(runner, case)
    timed.settle()
    return timed


def test_a_sample_is_as_long_as_the_host_takes_for_it() -> None:
    """10 ms of such launches are not 10,000."""
    assert settled([0.0]).repetitions == 100


@pytest.mark.parametrize(("drains", "status"), [([0.0, 0.1, 0.1], "ok"), ([0.1], "impossible")])
def test_a_wait_that_does_not_wait_shows_in_every_sample(drains: list[float], status: str) -> None:
    """A busy machine makes some downloads longer: a row was `impossible` on it that is right when it is alone."""
    assert settled(drains).status == status


def test_both_medians_are_over_the_same_launches() -> None:
    launches = [Launched(clock, events, None) for clock, events in ((3.0, 1.0), (5.0, 4.0), (9.0, 2.0))]
    assert _medians(launches) == {"kernel": 2.0, "clock": 5.0, "together": 17.0}


@pytest.mark.parametrize("events", [0.0, -1e-6])
def test_a_time_that_events_cannot_tell_is_a_nanosecond(events: float) -> None:
    """Nothing can be divided by 0: a whole comparison would end over a row of an empty vector."""
    together = pytest.approx(3e-5)
    assert _medians([Launched(1e-5, events, None)] * 3) == {"kernel": 1e-9, "clock": 1e-5, "together": together}


def test_each_rank_has_medians_of_its_own() -> None:
    launches = [
        Launched(0.01, max(kernel), contract.Communication(max(communicating), (8, 9), communicating, kernel))
        for communicating, kernel in [((1e-3, 2e-3), (5e-3, 6e-3)), ((3e-3, 1e-3), (4e-3, 7e-3)), ((2e-3, 9e-3),) * 2]
    ]
    assert _medians(launches) == {
        "kernel": 7e-3,
        "clock": 0.01,
        "together": pytest.approx(0.03),
        "communicating": 3e-3,
        "bytes_sent": (8, 9),
        "communicating_by_rank": [2e-3, 2e-3],
        "kernel_by_rank": [4e-3, 7e-3],
    }


def test_a_device_may_tell_nothing_of_each_rank() -> None:
    """As plug-ins of the first version that knew ranks."""
    found = _medians([Launched(0.01, None, contract.Communication(1e-3, (8, 9)))])
    assert (found["communicating_by_rank"], found["kernel_by_rank"]) == ([], [])


class FakeEvent:
    """An event, which notes the tick at which it was recorded."""

    def __init__(self, cuda: FakeCuda) -> None:
        self._cuda, self.at = cuda, 0.0

    def record(self, *_: object) -> None:
        self._cuda.calls.append("record")
        self.at = float(len(self._cuda.calls))

    def query(self) -> bool:
        self._cuda.calls.append(f"asked for {self.at:.0f}")
        return self._cuda.early

    done = property(query)

    def elapsed_time(self, end: FakeEvent) -> float:
        return end.at - self.at


@dataclass
class FakeCuda:
    """What CuPy and numba.cuda do, as far as events go: every call, and a clock that ticks with each.

    early: whether the GPU comes to each event at once, before the host has queued what follows.
    """

    early: bool = False
    calls: list[str] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)

    def event(self) -> FakeEvent:
        return FakeEvent(self)

    def launch(self, buffers: Any, sizes: Any) -> None:
        self.calls.append("launch")

    def pause(self, microseconds: float) -> None:
        self.calls.append("pause")
        self.pauses.append(microseconds)


class Anything:
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing to leave."""


def fake_gpu(kind: str, cuda: FakeCuda, *, profiled: bool) -> tuple[Any, Any]:
    """A GPU of a backend without its library, and its launch."""
    gpu: Any
    if kind == "cupy":
        gpu = object.__new__(cuda_backend.Gpu)
        events = SimpleNamespace(Event=cuda.event, get_elapsed_time=lambda begin, end: end.at - begin.at)
        gpu._cupy, gpu._gpu = SimpleNamespace(cuda=events), Anything()
    else:
        gpu = object.__new__(numba_cuda.Gpu)
        gpu._cuda, gpu._context, gpu._stream = SimpleNamespace(event=cuda.event), Anything(), object()
    gpu._of_thread, gpu._pause, gpu.profiled = threading.local(), cuda.pause, profiled
    return gpu, gpu.recorded(cuda.launch)


@pytest.mark.parametrize("kind", ["cupy", "numba"])
class TestOfGpus:
    """There may be no GPU at hand: the calls, on a stand-in."""

    def test_events_stand_around_the_launch(self, kind: str) -> None:
        cuda = FakeCuda()
        gpu, launch = fake_gpu(kind, cuda, profiled=True)
        assert cuda.calls == ["pause"], "compiled before anything is timed"
        cuda.calls.clear()
        launch([], [])
        assert cuda.calls == ["pause", "record", "launch", "record", "asked for 2"], "for the first one, at the end"
        assert gpu.event_seconds() == 0.002, "milliseconds, of which two ticks passed"

    def test_the_gpu_pauses_until_the_host_has_queued_a_launch(self, kind: str) -> None:
        """Or else events count what the host does between them: 55 microseconds of 62 for a small product."""
        cuda = FakeCuda(early=True)
        _, launch = fake_gpu(kind, cuda, profiled=True)
        del cuda.pauses[:]
        for _ in range(13):
            launch([], [])
        assert cuda.pauses[:4] == pytest.approx([10, 15, 22.5, 33.75])
        assert cuda.pauses[-2:] == [500, 500]
        cuda.early = False
        for _ in range(600):
            launch([], [])
        assert cuda.pauses[-1] == 5, "a pause that is long enough becomes shorter"

    def test_a_launch_that_nobody_times_is_left_as_it_is(self, kind: str) -> None:
        cuda = FakeCuda()
        gpu, launch = fake_gpu(kind, cuda, profiled=False)
        launch([], [])
        assert cuda.calls == ["launch"]
        assert gpu.event_seconds() is None

    def test_a_gpu_is_not_the_cpu(self, kind: str) -> None:
        gpu, _ = fake_gpu(kind, FakeCuda(), profiled=False)
        assert (gpu.on_cpu, gpu.obeys_threads) == (False, True)


def test_the_peak_and_the_bandwidth_of_a_gpu_follow_from_the_shortest_run() -> None:
    """Which calls there are, and what is made of their times: between two events one tick of a microsecond passes."""
    cuda, launched = FakeCuda(), []
    gpu, _ = fake_gpu("cupy", cuda, profiled=False)
    gpu._gpu.id, gpu._gpu.compute_capability, gpu._multiply_adds = 0, "90", {}
    gpu._cupy.cuda.Event = lambda: SimpleNamespace(record=cuda.event().record, synchronize=lambda: None)
    gpu._cupy.cuda.get_elapsed_time = lambda *_: 2.0
    properties = {"l2CacheSize": 2**25, "multiProcessorCount": 10}
    gpu._cupy.cuda.runtime = SimpleNamespace(getDeviceProperties=lambda _: properties)
    memory = SimpleNamespace(
        nbytes=2**28, data=SimpleNamespace(copy_from_device_async=lambda *_: launched.append("copy"))
    )
    gpu._cupy.asarray = lambda array: array
    gpu._cupy.empty = gpu._cupy.zeros = lambda *_: memory
    gpu._cupy.empty_like = lambda _: memory
    kernel = lambda grid, block, arguments: launched.append((grid, block, int(arguments[2])))  # noqa: E731
    gpu.compiled = lambda *_: [kernel]
    assert gpu.cache_bytes == 2**25
    assert gpu.peak(FLOAT32) == 2 * 8 * launched[0][2] * 80 * 256 / 0.002
    assert launched[0][:2] == ((80,), (256,))
    assert gpu.bandwidth() == 2 * 2**28 / 0.002
    assert gpu.peak(np.dtype(np.float16)) is None, "that of the tensor cores is another"


@pytest.mark.opencl
def test_a_device_that_uses_all_threads_does_not_obey(monkeypatch: pytest.MonkeyPatch) -> None:
    from py_backends.backend import opencl

    found = next(device for name, device in opencl._devices().items() if name in {"intel-cpu", "pocl"})
    device = opencl.OpenClDevice(found, found.max_compute_units)
    assert (device.on_cpu, device.obeys_threads) == (True, True)
    monkeypatch.setattr(device._cl, "device_partition_property", SimpleNamespace(BY_COUNTS=-1))
    device = opencl.OpenClDevice(found, 0)
    assert not device.obeys_threads
    assert device.note


@dataclass
class FakeDevice:
    """Remembers what was uploaded to it."""

    on_cpu: bool
    uploaded: list[int] = field(default_factory=list)

    def upload(self, array: Array) -> Array:
        self.uploaded.append(array.nbytes)
        return array

    def release(self, buffer: Buffer) -> None:
        self.uploaded.append(-buffer.nbytes)


class TestFlush:
    @pytest.mark.parametrize(
        ("last", "second", "cpus", "written"),
        [
            (2**23, 2**18, 2, 2**24),
            (2**40, 2**20, 2, flushing.MOST_BYTES),
            (2**20, 2**20, 4, 4 * 2**21),
        ],
        ids=["twice the last level", "up to a limit", "twice what each CPU has for itself"],
    )
    def test_writes_enough(
        self, monkeypatch: pytest.MonkeyPatch, last: int, second: int, cpus: int, written: int
    ) -> None:
        parts: list[tuple[int, int]] = []
        monkeypatch.setattr(caches, "last_level_cache", lambda: last)
        monkeypatch.setattr(caches, "second_level_cache", lambda: second)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cpus)))
        monkeypatch.setattr(flushing, "_overwrite", lambda memory, cpu: parts.append((memory.nbytes, cpu)))
        monkeypatch.setattr(os, "sched_setaffinity", lambda *_: None)
        assert flushing.flush(as_device(FakeDevice(on_cpu=True))) == written
        assert sorted(parts, key=lambda part: part[1]) == [(written // cpus, cpu) for cpu in range(cpus)]

    def test_overwrites_every_line_on_each_cpu_and_ends_where_it_began(self, monkeypatch: pytest.MonkeyPatch) -> None:
        allowed = os.sched_getaffinity(0)
        parts: list[tuple[bool, set[int]]] = []
        overwrite = flushing._overwrite

        def watched(memory: Array, cpu: int) -> None:
            memory[:] = 7
            overwrite(memory, cpu)
            parts.append((bool((memory.max(axis=1) == 8).all()), os.sched_getaffinity(0)))

        monkeypatch.setattr(flushing, "MOST_BYTES", 2**20)
        monkeypatch.setattr(flushing, "_overwrite", watched)
        here = max(allowed)
        monkeypatch.setattr(flushing, "_current_cpu", lambda: here)
        flushing.flush(as_device(FakeDevice(on_cpu=True)))
        assert parts == [(True, {cpu}) for cpu in [*sorted(allowed - {here}), here]]
        assert os.sched_getaffinity(0) == allowed

    def test_knows_on_which_cpu_it_runs(self) -> None:
        assert flushing._current_cpu() in os.sched_getaffinity(0)

    def test_other_devices_are_written_to_as_well(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(flushing, "MOST_BYTES", 2**20)
        host, gpu = FakeDevice(on_cpu=True), FakeDevice(on_cpu=False)
        written = flushing.flush(as_device(host))
        assert flushing.flush(as_device(gpu)) == 2 * written
        assert (host.uploaded, gpu.uploaded) == ([], [written, -written])


def as_device(fake: Any) -> Device:
    device: Device = fake
    return device


class Recorder(Device):
    """NumPy, as a device that writes down what it does."""

    def __init__(self, log: list[str]) -> None:
        self._log = log
        self._device = registry.backend("numpy").open("cpu", 1)

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> contract.Launch:
        launch = self._device.prepare(text, dtype)

        def logged(buffers: Any, sizes: Any) -> None:
            self._log.append("launch")
            launch(buffers, sizes)

        return logged

    def upload(self, array: Array) -> Buffer:
        self._log.append("upload")
        return array

    def allocate(self, array: Array) -> Buffer:
        return array

    def wait(self) -> None:
        """Nothing to wait for: a launch is done when it returns."""

    def download(self, buffer: Buffer, array: Array) -> None:
        """Nothing to move."""

    def release(self, buffer: Buffer) -> None:
        """Nothing to give back."""


class HostRecorder(Recorder, contract.HostDevice):
    """The same, known to compute in the caller's memory."""


@pytest.mark.parametrize(("cold", "again"), [(False, []), (True, []), (True, ["flush"])])
def test_a_cold_sample_flushes_before_its_one_launch(
    monkeypatch: pytest.MonkeyPatch, cold: bool, again: list[str]
) -> None:
    """And once more where an upload, which moves data, comes in between. Sizes that are new are placed once before."""
    log: list[str] = []
    session, case = session_on(Recorder(log) if again else HostRecorder(log))
    monkeypatch.setattr("py_backends.workers.session.flush", lambda _: log.append("flush"))
    hot = {"warm_up": 0 if cold else 2, "calls": 1, "repetitions": 0 if cold else 3}
    session.sample([], **hot, poisoned=False, cold=cold, **_arguments(TEXT, case))
    expected = ["flush", "upload", "upload", *again, "launch"] if cold else ["upload"] * 2 + ["launch"] * 2
    before = ["upload", "upload"] if again else []
    assert log[: len(before) + len(expected)] == before + expected
    assert log.count("launch") == (1 if cold else 2 + 1 + 3)
    case.close()


def test_flushing_is_in_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that moves by a day for each flush, and else not at all."""
    now = [0.0]
    session, case = session_on(Recorder([]))
    monkeypatch.setattr("py_backends.workers.session.perf_counter", lambda: now[0])
    monkeypatch.setattr("py_backends.workers.session.flush", lambda _: now.__setitem__(0, now[0] + 86_400))
    once = {"warm_up": 0, "calls": 1, "repetitions": 0, "poisoned": False, "cold": True}
    figures = session.sample([], **once, **_arguments(TEXT, case))
    assert now[0] == 2 * 86_400, "before the sample, and after its upload"
    assert {name: value for name, value in figures.items() if value} == {}
    case.close()


def test_a_sample_has_the_phases_of_the_call_that_takes_the_median_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads of a runtime may share one core after a pause: a call then takes thirty times as long."""
    uploads, now = iter([70.0, 8.0, 1.0, 2.0, 9.0, 3.0]), [0.0]  # the first is in no figure: the sizes are new

    class SlowUpload(Recorder):
        def allocate(self, array: Array) -> Any:
            now[0] += next(uploads)
            return super().allocate(array)

    log: list[str] = []
    session, case = session_on(SlowUpload(log))
    monkeypatch.setattr("py_backends.workers.session.perf_counter", lambda: now[0])
    how = {"warm_up": 0, "calls": 5, "repetitions": 4, "poisoned": False, "cold": False}
    figures = session.sample([], **how, **_arguments(TEXT, case))
    assert (figures["upload"], figures["end_to_end"]) == (3.0, 3.0)
    assert log.count("launch") == 5 + 4, "the launches are repeated once, on the buffers of the last call"
    case.close()


def test_what_the_last_download_takes_longer_is_left_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each phase by a clock that moves by other seconds in each step."""
    now, downloads = [0.0], iter([5.0, 12.0])

    class Slow(Recorder):
        def upload(self, array: Array) -> Any:
            now[0] += 1.0
            return super().upload(array)

        def wait(self) -> None:
            now[0] += 100.0

        def download(self, buffer: Buffer, array: Array) -> None:
            now[0] += next(downloads)

        def release(self, buffer: Buffer) -> None:
            now[0] += 2.0

    session, case = session_on(Slow([]))
    monkeypatch.setattr("py_backends.workers.session.perf_counter", lambda: now[0])
    how = {"warm_up": 0, "calls": 1, "repetitions": 3, "poisoned": False, "cold": False}
    found = session.sample([], **how, **_arguments(TEXT, case))
    assert (found["upload"], found["download"], found["release"]) == (2.0, 5.0, 6.0)
    assert found["end_to_end"] == 2.0 + 100.0 + 5.0 + 6.0
    assert found["drain"] == 12.0 - 5.0
    assert (found["kernel"], found["together"]) == (100.0, 300.0)
    case.close()


class Holding(Recorder):
    """Counts the buffers that it holds; its launch changes an input, or fails, where it is told to."""

    held = placed = 0
    fails = changes = False

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> contract.Launch:
        launch = super().prepare(text, dtype)

        def misled(buffers: Any, sizes: Any) -> None:
            launch(buffers, sizes)
            if self.changes:
                buffers[0][0] += 1
            if self.fails:
                raise contract.KernelFault("as expected")

        return misled

    def place_one(self, *arguments: Any, **how: Any) -> Buffer:
        self.held, self.placed = self.held + 1, self.placed + 1
        return super().place_one(*arguments, **how)

    def release(self, buffer: Buffer) -> None:
        self.held -= 1


def test_a_worker_gives_back_all_buffers() -> None:
    """Else the memory of a GPU is full after some rows."""
    device = Holding([])
    session, case = session_on(device)
    placed = _arguments(TEXT, case)
    how = {"warm_up": 1, "calls": 3, "repetitions": 2, "poisoned": False, "cold": False}
    session.first_launch([], **placed)
    session.sample([], **how, **placed)
    assert session.run([], **placed) == {"wrong": None}
    device.fails = True
    with pytest.raises(contract.KernelFault):
        session.run([], **placed)
    assert device.placed == 3 * (2 + 1 + 3 + 1 + 1)
    assert device.held == 0
    case.close()


def test_a_checked_run_tells_of_an_input_that_was_changed() -> None:
    device = Holding([])
    session, case = session_on(device)
    device.changes = True
    assert session.run([], **_arguments(TEXT, case))["wrong"]
    case.close()


def test_a_statement_is_timed_by_its_mean_and_its_result_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """It computes on copies, whose results would else not be looked at."""
    runs: list[int] = []

    class Timer(timeit.Timer):
        """Three seconds a run."""

        def timeit(self, number: int = 1) -> float:
            runs.append(number)
            super().timeit(number)
            return 3.0 * number

    monkeypatch.setattr("py_backends.workers.session.Timer", Timer)
    session, case = session_on(Recorder([]))
    case.poison()
    how = {"statement": "np.add(a, b, out=c)", "warm_up": 2, "repetitions": 5, **_arguments(TEXT, case)}
    assert session.sample_statement([], poisoned=False, **how) == {"seconds": 3.0}
    assert not case.check_output().check.passed, "only a sample that is checked gives its result back"
    assert session.sample_statement([], poisoned=True, **how) == {"seconds": 3.0}
    assert case.check_output().check.passed
    assert runs == [2, 5] * 2
    case.close()


def test_a_statement_has_what_its_arena_holds_now() -> None:
    """Its copies are kept as long as the arena. Attached anew, it may have the memory of other inputs."""
    session, case = session_on(Recorder([]))
    other = Case(registry.problem("vecadd"), (1000,), FLOAT32, seed=2)
    how = {"statement": "np.add(a, b, out=c)", "warm_up": 0, "repetitions": 1, "poisoned": True}
    session.sample_statement([], **how, **_arguments(TEXT, case))
    session.load(list(map(os.dup, other.descriptors)), id(case), other.capacities, outputs=1)
    session.sample_statement([], **how, **_arguments(TEXT, other) | {"arena": id(case)})
    assert other.check_output().check.passed
    case.close()
    other.close()


TEXT = registry.kernel_texts("vecadd", "numpy")["lecture"]


def session_on(device: Device) -> tuple[Session, Case]:
    """What a worker holds, in this process, with a case of vecadd."""
    case = Case(registry.problem("vecadd"), (1000,), FLOAT32, seed=1)
    session = Session()
    session._device, session._backend = device, "numpy"
    session.prepare([], "vecadd", "lecture", "float32")
    session.load(list(map(os.dup, case.descriptors)), id(case), case.capacities, outputs=1)
    return session, case


def test_a_runner_of_cold_samples_asks_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    times: dict[str, Any] = {
        "upload": 0.0,
        "kernel": 1.0,
        "download": 0.0,
        "end_to_end": 1.0,
        "drain": 0.0,
        "clock": None,
    }

    def ask(*_: object, **arguments: Any) -> dict[str, Any]:
        asked.append(arguments)
        return times

    monkeypatch.setattr(Runner, "_ask", ask)
    monkeypatch.setattr(Runner, "_ready", lambda *_: None)
    case = Case(registry.problem("vecadd"), (10,), FLOAT32, seed=1)
    text = registry.kernel_texts("vecadd", "numpy")["lecture"]
    for cold, poisoned in ((True, False), (False, False), (False, True)):
        runner = Runner("numpy", Target("cpu"), 1, cold=cold)
        sample = runner.sample(text, case, warm_up=3, repetitions=7, calls=5, poisoned=poisoned)
        assert sample == Sample(**times)
    assert [(each["cold"], each["warm_up"], each["repetitions"], each["calls"]) for each in asked] == [
        (True, 0, 0, 1),
        (False, 3, 7, 5),
        (False, 3, 7, 1),  # the result of an earlier call would hide the output's NaN
    ]
    case.close()


@pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("numpy", "sycl")]
)
def test_the_first_launch_has_the_compilation_in_it(backend: str) -> None:
    text = registry.kernel_texts("vecadd", backend)["lecture"]
    case = Case(text.problem, (4096,), FLOAT32, seed=1)
    target = next(target for target in targets_of(backend) if target.available)
    # A runner of its own: the session's worker would first compile all that the suite runs.
    runner = Runner(backend, target, 1)
    prepared = runner.prepare(text, case)
    assert prepared.first_launch is not None
    assert prepared.first_launch >= prepared.seconds > 0
    assert runner.prepare(text, case) is prepared, "there is one first launch"
    runner.close()
    case.close()


@pytest.mark.slow
@pytest.mark.opencl
def test_cold_and_by_events_through_the_command_line(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    run = run_command(
        *("compare", "--cache", "cold", "--kernel", "vecadd", "--backend", "numpy,opencl", "--shape", "vecadd=1009"),
        *("--budget", "2", "--json", results),
    )
    assert run.returncode == 0, run.stdout + run.stderr
    report = Report.read(results)
    assert report.settings["cache"] == "cold"
    by_events = {row.backend: row.seconds.clock is not None for row in report.rows if row.seconds}
    assert by_events == {"numpy": False, "opencl": True}
    for row in report.rows:
        if row.status == "unavailable":  # a driver of OpenCL that compiles nothing here
            continue
        assert row.seconds is not None
        assert row.seconds.first_launch is not None
        assert row.seconds.prepare is not None
        assert row.seconds.first_launch >= row.seconds.prepare


def test_an_unknown_state_of_the_caches_is_refused() -> None:
    run = run_here("compare", "--cache", "warm")
    assert run.returncode == 2
    assert re.search("'?hot'?, '?cold'?", run.stderr), "argparse quotes choices until Python 3.12"
    with pytest.raises(ValueError, match="cache must be hot or cold, not 'warm'"):
        pb.compare(cache="warm")
