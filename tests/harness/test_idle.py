"""What workers take of the CPUs: nothing while they wait for their turn, and no more than their threads while they run.

Of real workers of every backend that computes on the CPU, where people have told their libraries to spin.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import psutil
import pytest
from conftest import found

from py_backends import registry
from py_backends.contract import Target
from py_backends.harness.case import Case
from py_backends.harness.interference import read_system
from py_backends.kernel_text import KernelText
from py_backends.system import machine
from py_backends.workers.runner import Runner

pytestmark = [pytest.mark.slow, pytest.mark.stamped("py_backends/backend", "py_backends/workers")]

SPINNING = {
    "OMP_WAIT_POLICY": "active",
    "GOMP_SPINCOUNT": "infinite",
    "KMP_BLOCKTIME": "infinite",
    "KMP_LIBRARY": "turnaround",
    "MKL_NUM_THREADS": "2",
}
ON_THE_CPU = [
    pytest.param(name, target, marks=getattr(pytest.mark, name), id=f"{name}-{target.name}")
    for name, target in found()
    if target.available and not target.emulated
]
FLOAT32 = np.dtype(np.float32)


@contextmanager
def matmul_of(backend: str, target: Target, threads: int) -> Iterator[tuple[Runner, KernelText, Case]]:
    """A worker with a matrix product to run, which has run once; skips what does not compute on the CPU."""
    sources = registry.kernel_texts("matmul", backend).values()
    text = next(text for text in sources if registry.dtypes(text, target))
    dtypes = registry.dtypes(text, target)
    dtype = FLOAT32 if FLOAT32.name in dtypes else np.dtype(dtypes[0])  # a matrix unit has no float32
    size = 33 if backend == "python" else 384
    case = Case(text.problem, (size, size, size), dtype, seed=1)
    runner = Runner(backend, target, threads)
    try:
        prepared = runner.prepare(text, case)
        if not prepared.on_cpu or not prepared.obeys_threads:
            pytest.skip(f"{backend} does not compute on the CPU, or cannot obey: {prepared.note}")
        runner.run(text, case)
        yield runner, text, case
    finally:
        runner.close()
        case.close()


def cpu_seconds(runner: Runner) -> float:
    assert runner._worker
    return read_system().ours[runner._worker.process]


@pytest.mark.parametrize(("backend", "target"), ON_THE_CPU)
def test_an_idle_worker_uses_no_core(backend: str, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SPINNING.items():
        monkeypatch.setenv(name, value)
    with matmul_of(backend, target, machine.cpus()) as (runner, _text, _case):
        assert runner._worker
        deadline = time.monotonic() + 10
        while psutil.Process(runner._worker.process).status() != psutil.STATUS_STOPPED and time.monotonic() < deadline:
            time.sleep(0.01)  # a stopping thread first leaves the kernel
        before = cpu_seconds(runner)
        time.sleep(0.3)
        assert cpu_seconds(runner) - before < 0.01, "of 0.3 s, in which one that spins would use up most"


@pytest.mark.parametrize(("backend", "target"), ON_THE_CPU)
def test_a_worker_with_one_thread_uses_no_more_than_one_core(backend: str, target: Target) -> None:
    """Half of another one is left to what drivers do beside; who ran on two would use both."""
    with matmul_of(backend, target, threads=1) as (runner, text, case):
        once = runner.sample(text, case, warm_up=1, repetitions=3).kernel
        repetitions = max(3, int(0.3 / max(once, 1e-6)))
        before, begin = cpu_seconds(runner), time.monotonic()
        runner.sample(text, case, warm_up=0, repetitions=repetitions)
        used = (cpu_seconds(runner) - before) / (time.monotonic() - begin)
    assert used < 1.5
