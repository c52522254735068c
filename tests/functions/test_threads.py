"""`threads` reaches every device: what can be seen of it without a clock, and notes where it is not obeyed.

How many threads a kernel runs on can be seen where they are made for it (OpenMP), where it can ask for their
numbers (Numba), where a library is told and can be asked (BLAS), and where the device is cut to size (OpenCL
and SYCL). The kernels of `python` and `cpp` have one thread in any case.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import psutil
import pytest
from commands import run_command, run_python
from conftest import at_hand, targets_of

from py_backends import registry
from py_backends.contract import Target
from py_backends.harness.case import Case
from py_backends.kernel_text import KernelText
from py_backends.workers.runner import Runner

pytestmark = pytest.mark.slow

FLOAT32 = np.dtype(np.float32)


@contextmanager
def vecadd_of(backend: str, target: Target, threads: int) -> Iterator[tuple[Runner, KernelText, Case]]:
    """A fresh worker of that many threads with an addition to run."""
    text = next(iter(registry.kernel_texts("vecadd", backend).values()))
    case = Case(text.problem, (521 if target.emulated else 100_003,), FLOAT32, seed=1)
    runner = Runner(backend, target, threads)
    try:
        yield runner, text, case
    finally:
        runner.close()
        case.close()


def target_of(backend: str) -> Target:
    """The first that is there and takes vecadd."""
    return next(each for each in targets_of(backend) if each.available and takes_vecadd(backend, each))


def takes_vecadd(backend: str, target: Target) -> bool:
    return bool(registry.texts_in("float32", "vecadd", backend, target))


def marked_targets(*backends: str) -> list[Any]:
    """Every target that is there, or those of some backends, as parameters with their markers."""
    return [
        pytest.param(name, target, marks=getattr(pytest.mark, name), id=f"{name}-{target.name}")
        for name, target in at_hand()
        if (not backends or name in backends) and takes_vecadd(name, target)
    ]


@pytest.mark.parametrize(("backend", "target"), marked_targets())
def test_every_target_is_right_with_one_thread(backend: str, target: Target) -> None:
    with vecadd_of(backend, target, threads=1) as (runner, text, case):
        case.poison()
        runner.run(text, case)
        assert case.check_output().reason is None


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("avx", "openmp")]
)
def test_openmp_makes_as_many_threads_as_it_is_told(
    backend: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pool is made at the first launch: the calling thread and the others. No limit of the shell counts."""
    monkeypatch.setenv("OMP_THREAD_LIMIT", "1")
    with vecadd_of(backend, target_of(backend), threads) as (runner, text, case):
        worker = psutil.Process(runner._ready(text, case)._process.pid)
        before = worker.num_threads()
        runner.run(text, case)
        assert worker.num_threads() - before == threads - 1


@pytest.mark.stdpar
@pytest.mark.parametrize("threads", [1, 2])
def test_onetbb_works_on_as_many_threads_as_it_is_told(threads: int) -> None:
    """The threads that compute are seen by the time that they had on a CPU."""
    text = registry.kernel_texts("matmul", "stdpar")["lecture"]
    case = Case(text.problem, (512, 512, 512), FLOAT32, seed=1)
    runner = Runner("stdpar", target_of("stdpar"), threads)
    try:
        worker = psutil.Process(runner._ready(text, case)._process.pid)
        before = {each.id: each.user_time for each in worker.threads()}
        while (worked := worked_since(before, worker)) and max(worked.values()) < 0.5:
            runner.run(text, case)
        assert len([seconds for seconds in worked.values() if seconds > 0.1]) == threads
    finally:
        runner.close()
        case.close()


def worked_since(before: Mapping[int, float], process: psutil.Process) -> dict[int, float]:
    """By thread, the seconds that it has computed since then."""
    return {each.id: each.user_time - before.get(each.id, 0.0) for each in process.threads()}


@pytest.mark.stdpar
def test_onetbb_says_where_it_has_fewer_threads() -> None:
    threads = len(os.sched_getaffinity(0)) + 3
    device = registry.backend("stdpar").open("cpu", threads)
    device.prepare(registry.kernel_texts("vecadd", "stdpar")["lecture"], FLOAT32)
    assert re.fullmatch(rf"oneTBB uses \d+ threads where {threads} are asked for", device.note or "")


@dataclass(frozen=True)
class TextOf(KernelText):
    """A kernel text whose module is made up here."""

    function: Callable[..., None] = print

    def load(self, part: str | None = None) -> ModuleType:
        module = ModuleType("made_up")
        setattr(module, self.kernel, self.function)
        return module


def text_of(backend: str, function: Callable[..., None]) -> TextOf:
    return TextOf(registry.problem("vecadd"), "lecture", backend, Path(), function=function)


def launched(backend: str, function: Callable[..., None], threads: int) -> list[float]:
    """What a made-up vecadd leaves in its output on the first target of a backend."""
    device = registry.backend(backend).open(target_of(backend).name, threads)
    arrays = [np.zeros(1000, FLOAT32) for _ in range(3)]
    device.prepare(text_of(backend, function), FLOAT32)(arrays, [1000])
    return list(arrays[-1].tolist())


@pytest.mark.numba_cpu
def test_numba_runs_on_as_many_threads_as_it_is_told() -> None:
    import numba

    @numba.njit(parallel=True)
    def who(_a, _b, c, n):
        for i in numba.prange(n):
            c[i] = numba.get_thread_id()

    usual = numba.get_num_threads()
    assert set(launched("numba_cpu", who, threads=1)) == {0}
    for threads in {usual, min(2, usual)}:
        ran_on = set(launched("numba_cpu", who, threads))
        assert max(ran_on) < threads
        assert ran_on == set(range(threads)) or numba.threading_layer() == "tbb", "else one thread shows nothing"
    assert numba.get_num_threads() == usual, "the caller's number is given back"


@pytest.mark.numpy
@pytest.mark.parametrize("threads", [1, 2])
def test_numpy_tells_its_blas(threads: int) -> None:
    from py_backends.backend import _blas

    def pools(_a: Any, _b: Any, c: Any, _n: int) -> None:
        c[:] = next(pool.num_threads for pool in _blas.pools())

    usual = [pool.num_threads for pool in _blas.pools()]
    assert set(launched("numpy", pools, threads)) == {threads}
    assert [pool.num_threads for pool in _blas.pools()] == usual


@pytest.mark.mkl
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_mkl_is_told(threads: int) -> None:
    from py_backends.backend._mkl import library

    def most(_a: Any, _b: Any, c: Any, _n: int) -> None:
        c[:] = library().MKL_Get_Max_Threads()

    usual = library().MKL_Get_Max_Threads()
    assert set(launched("mkl", most, threads)) == {threads}
    assert library().MKL_Get_Max_Threads() == usual, "the caller's number is given back"


@pytest.mark.onednn
def test_onednn_is_told() -> None:
    from py_backends.backend._tbb import most_threads

    def most(_a: Any, _b: Any, c: Any, _n: int) -> None:
        c[:] = most_threads()

    registry.backend("onednn").open("cpu", 1)  # which loads TBB: it has no threads to tell of before
    usual = most_threads()
    for threads in {1, usual}:
        array = np.zeros(1, FLOAT32)
        device = registry.backend("onednn").open("cpu", threads)
        device.prepare(text_of("onednn", most), FLOAT32)([array, array, array], [1])
        assert (array[0], device.note) == (threads, None)
    assert most_threads() == usual, "the others of this process have all again"
    too_many = registry.backend("onednn").open("cpu", usual + 1)
    assert re.findall(r"\d+", too_many.note or "") == [str(usual), str(usual + 1)], "used, and asked for"


@pytest.mark.parametrize(("backend", "target"), marked_targets("opencl", "sycl"))
def test_devices_on_the_cpu_are_cut_to_size_or_say_why_not(backend: str, target: Target) -> None:
    if target.name not in {"intel-cpu", "pocl"}:
        pytest.skip(f"{target.name} is no CPU: threads are not for it")
    whole = registry.backend(backend).open(target.name, 10_000)
    part: Any = registry.backend(backend).open(target.name, 1)
    if part._device.max_compute_units != 1:
        assert f" 1 of its {part._device.max_compute_units} threads" in part.note
    else:
        assert part.note is None
    assert whole.note is None, "a limit above what there is, is kept"


@pytest.mark.opencl
def test_opencl_says_that_its_driver_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyopencl as cl

    from py_backends.backend import opencl

    def refuse(*_: Any) -> None:
        raise cl.LogicError("create_sub_devices failed: INVALID_VALUE")

    monkeypatch.setattr(cl.Device, "create_sub_devices", refuse)
    found = next(device for name, device in opencl._devices().items() if name in {"intel-cpu", "pocl"})
    device = opencl.OpenClDevice(found, 0)
    assert device._device == found
    assert f" 0 of its {found.max_compute_units} threads" in (device.note or "")
    assert not device.obeys_threads


@pytest.mark.sycl
def test_sycl_says_that_its_driver_refuses() -> None:
    from py_backends.backend import _sycl
    from py_backends.backend.sycl import SyclDevice

    found = next(device for device in _sycl.devices("sycl").values() if device.is_cpu)
    device = SyclDevice(found, 0)  # dpctl refuses a part of no threads, as it does what the driver refuses
    assert device._device == found
    assert f" 0 of its {found.max_compute_units} threads" in (device.note or "")
    assert not device.obeys_threads


@pytest.mark.numba_cpu
def test_rows_say_what_could_not_be_obeyed(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    options = ("--kernel", "vecadd", "--shape", "vecadd=509", "--backend", "numba_cpu", "--budget", "1")
    run = run_command("compare", *options, "--threads", "1000", "--json", path)
    assert run.returncode == 0, run.stdout
    (row,) = json.loads(path.read_text())["rows"]
    assert row["note"].startswith("Numba's pool")
    assert "1000 threads" in run.stdout
    assert "Numba's pool" in run.stdout


@pytest.mark.parametrize("backend", ["openmp", "avx", "mkl", "onednn", "numba_cpu"])
def test_a_thread_that_calls_may_use_all_its_cpus_afterwards(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runtime binds it to one where a user asks for bound threads: later pools of the caller would share that."""
    monkeypatch.setenv("OMP_PROC_BIND", "true")
    script = f"""
import os
import numpy as np
import py_backends as pb
before = os.sched_getaffinity(0)
a = np.ones((256, 256), "f4")
for _ in range(2):
    assert (pb.matmul(a, a, backend="{backend}") == 256).all()
print(os.sched_getaffinity(0) == before)
"""
    run = run_python("-c", script)
    assert (run.stdout, run.stderr) == ("True\n", "")
