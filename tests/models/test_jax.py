"""JAX: what its arrays and its compiler do to callers. Whether kernels are right, the suite says."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np
import psutil
import pytest
from commands import run_python
from conftest import targets_of

import py_backends as pb
from py_backends import registry
from py_backends.backend import jax as backend
from py_backends.contract import Target
from py_backends.harness.case import Case
from py_backends.kernel_text import KernelText
from py_backends.workers.runner import Runner

pytestmark = pytest.mark.jax

FLOAT32 = np.dtype(np.float32)


def aligned(count: int, by: int = 0) -> np.ndarray[Any, Any]:
    """Ones that begin so many bytes past a multiple of 64 bytes."""
    memory = np.empty(4 * count + 128, np.uint8)
    first = -memory.ctypes.data % 64 + by
    array = memory[first : first + 4 * count].view(np.float32)
    array.fill(1)
    return array


def opened(kernel: str) -> tuple[backend.Device, Any]:
    """A device, and a kernel of it in float32."""
    device = registry.backend("jax").open("cpu", 2)
    assert isinstance(device, backend.Device)
    return device, device.prepare(registry.kernel_texts(kernel, "jax")["lecture"], FLOAT32)


class TestArrays:
    @pytest.mark.parametrize(("by", "shared"), [(0, True), (4, False)])
    def test_inputs_are_used_as_they_lie_where_they_are_aligned(self, by: int, shared: bool) -> None:
        device, launch = opened("vecadd")
        array = aligned(1000, by)
        box, *_ = device.place(launch, [1000], [array, array, array])
        assert box.array is not None
        assert (box.array.unsafe_buffer_pointer() == array.ctypes.data) == shared

    def test_an_output_never_lies_in_the_callers_memory(self) -> None:
        """A launch gives its memory away."""
        device, launch = opened("vecadd")
        arrays = [aligned(1000) for _ in range(3)]
        boxes = device.place(launch, [1000], arrays, filled=True)
        launch(boxes, [1000])
        device.wait()
        assert all((array == 1).all() for array in arrays)
        assert np.asarray(boxes[-1].array).tolist() == [2] * 1000

    def test_launches_use_the_memory_of_the_output_again(self) -> None:
        device, launch = opened("vecadd")
        boxes = device.place(launch, [100_003], [aligned(100_003) for _ in range(3)])
        addresses = {boxes[-1].array.unsafe_buffer_pointer()}
        for _ in range(3):
            launch(boxes, [100_003])
            device.wait()
            addresses.add(boxes[-1].array.unsafe_buffer_pointer())
        assert len(addresses) == 1

    def test_what_lies_behind_an_array_stays(self) -> None:
        device, launch = opened("vecadd")
        arrays = [np.full(17, value, np.float32) for value in (1, 2, 7)]
        boxes = device.place(launch, [10], arrays, filled=True)
        launch(boxes, [10])
        device.wait()
        for box, array in zip(boxes, arrays, strict=True):
            device.download(box, array)
        assert [array.tolist() for array in arrays] == [[1] * 17, [2] * 17, [3] * 10 + [7] * 7]

    def test_arrays_of_jax_are_taken_and_given_without_a_copy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import jax

        a = np.arange(12, dtype=np.float32).reshape(3, 4)
        c = pb.matmul(a, a.T, backend="jax", to="device")
        assert isinstance(c, jax.Array)
        monkeypatch.setattr(backend.Device, "upload", lambda *_: pytest.fail("it was copied"))
        again = pb.matmul(c, c, backend="jax", to="device")
        monkeypatch.undo()
        assert np.array_equal(again, a @ a.T @ a @ a.T)
        assert np.array_equal(c, a @ a.T), "the caller's array is as it was"
        assert np.array_equal(pb.matmul(c, np.asarray(c), backend="numpy"), again), "others take it too"

    def test_an_array_of_jax_is_no_output(self) -> None:
        import jax

        a = jax.numpy.ones(3, "float32")
        with pytest.raises(ValueError, match="out is read-only"):
            pb.vecadd(a, a, backend="jax", out=jax.numpy.zeros(3, "float32"))

    def test_arrays_of_another_device_are_refused(self) -> None:
        script = (
            "import os; os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=2'\n"
            "import jax, numpy as np, py_backends as pb\n"
            "a = jax.device_put(np.ones(3, np.float32), jax.devices()[1])\n"
            "try: pb.vecadd(a, a, backend='jax')\n"
            "except TypeError as error: print(error)\n"
        )
        said = run_python("-c", script).stdout.lower()
        assert "it lies on" in said
        assert "copy it there first" in said


class TestProcess:
    def test_a_launch_returns_before_it_ends_and_the_wait_waits(self) -> None:
        device, launch = opened("matmul")
        sizes = (1500, 1500, 1500)
        boxes = device.place(launch, sizes, [np.ones(1500 * 1500, np.float32)] * 3)
        launch(boxes, sizes)
        assert not boxes[-1].array.is_ready()
        device.wait()
        assert boxes[-1].array.is_ready()

    def test_float64_needs_no_variable_and_nothing_of_the_callers_jax_changes(self) -> None:
        script = (
            "import os, jax, numpy as np, py_backends as pb\n"
            "before = dict(os.environ), jax.config.values.copy()\n"
            "a = np.array([1 + 2**-40, 2.0])\n"
            "print(pb.vecadd(a, a, backend='jax').tolist() == (2 * a).tolist())\n"
            "print((dict(os.environ), jax.config.values) == before, jax.numpy.ones(1).dtype)\n"
        )
        assert run_python("-c", script).stdout.split() == ["True", "True", "float32"]

    @pytest.mark.slow
    def test_xla_takes_the_cpus_that_it_is_told(self) -> None:
        """Of one thread, no more than the seconds that passed; of two, more, or both have had part of them."""
        for threads in (1, 2):
            passed, spent = self.seconds_of_products(threads)
            if threads == 1:
                assert sum(spent) < 1.2 * passed
            else:
                assert sum(spent) > 1.2 * passed or sorted(spent)[-2] > 0.2 * sum(spent)

    def seconds_of_products(self, threads: int) -> tuple[float, list[float]]:
        """The seconds in which a worker multiplied matrices, and those that each of its threads had on a CPU."""
        text = registry.kernel_texts("matmul", "jax")["lecture"]
        case = Case(text.problem, (1024, 1024, 1024), FLOAT32, seed=1)
        runner = Runner("jax", targets_of("jax")[-1], threads)
        try:
            runner.run(text, case)
            worker = psutil.Process(runner._ready(text, case)._process.pid)
            before = {each.id: each.user_time + each.system_time for each in worker.threads()}
            begin = perf_counter()
            while perf_counter() - begin < 1:
                runner.sample(text, case, warm_up=0, repetitions=20)
            passed = perf_counter() - begin
            return passed, [each.user_time + each.system_time - before.get(each.id, 0) for each in worker.threads()]
        finally:
            runner.close()
            case.close()

    def test_a_pool_that_was_started_with_others_says_so(self) -> None:
        script = (
            "from py_backends import registry\n"
            "jax = registry.backend('jax')\n"
            "for threads in (1, 3):\n"
            "    device = jax.open('cpu', threads)\n"
            "    print(device.obeys_threads, device.note)\n"
        )
        first, second = run_python("-c", script).stdout.splitlines()
        assert first == "True XLA takes subnormal numbers for zero"
        assert second.startswith("True XLA started with 1 threads in this process")

    def test_a_forked_child_is_refused(self) -> None:
        script = (
            "import os, sys, warnings; warnings.simplefilter('ignore')\n"
            "import numpy as np, py_backends as pb\n"
            "a = np.ones(3, np.float32); pb.vecadd(a, a, backend='jax')\n"
            "if os.fork() == 0:\n"
            "    try: pb.vecadd(a, a, backend='jax')\n"
            "    except pb.BackendUnavailable as error: print(error.reason, flush=True)\n"
            "    os._exit(0)\n"
            "os.wait()\n"
        )
        assert "forked" in run_python("-c", script).stdout

    @pytest.mark.parametrize("platforms", ["cuda", "nonsense"])
    def test_a_platform_that_is_not_there_is_named(self, platforms: str) -> None:
        script = (
            f"import os; os.environ['JAX_PLATFORMS'] = {platforms!r}\n"
            "import numpy as np, py_backends as pb\n"
            "a = np.ones(3, np.float32)\n"
            "try: pb.vecadd(a, a, backend='jax')\n"
            "except pb.BackendUnavailable as error: print(error.reason, error.fix, sep='; ')\n"
        )
        assert run_python("-c", script).stdout.strip().endswith(f"JAX_PLATFORMS={platforms}; unset JAX_PLATFORMS")


class TestKernels:
    def made_up(self, vecadd: Callable[..., Any]) -> Any:
        """A device, and a vecadd that is made up here, prepared."""

        class Text(KernelText):
            def load(self, part: str | None = None) -> ModuleType:
                module = ModuleType("made_up")
                module.vecadd = vecadd  # type: ignore[attr-defined]
                return module

        device, _ = opened("vecadd")
        return device, device.prepare(Text(registry.problem("vecadd"), "lecture", "jax", Path()), FLOAT32)

    @pytest.mark.parametrize(
        "vecadd",
        [
            lambda a, b, *_: (a + b)[:-1],
            lambda a, b, *_: (a + b).astype("float16"),
            lambda a, *_: a[0],
        ],
    )
    def test_a_result_of_another_shape_or_dtype_is_named(self, vecadd: Callable[..., Any]) -> None:
        device, launch = self.made_up(vecadd)
        with pytest.raises(TypeError, match=r"the kernel returns .*; its result is float32 of shape \(5,\)"):
            device.place(launch, [5], [np.ones(5, np.float32)] * 3)

    def test_sizes_are_compiled_once(self) -> None:
        compiled_for: list[int] = []

        def vecadd(a: Any, b: Any, _: Any, n: int) -> Any:
            compiled_for.append(n)
            return a + b

        device, launch = self.made_up(vecadd)
        for n in (5, 7, 5):
            device.place(launch, [n], [np.ones(n, np.float32)] * 3)
        assert compiled_for == [5, 7]

    def test_compiling_few_sizes_counts_as_preparing(self) -> None:
        target = targets_of("jax")[-1]
        text = registry.kernel_texts("vecadd", "jax")["lecture"]
        case, runner = Case(text.problem, (1003,), FLOAT32, seed=1), Runner("jax", target, 1)
        try:
            looked_up = runner.compile(text, FLOAT32).seconds
            assert runner.prepare(text, case).seconds > looked_up + 0.005
            phases = runner.sample(text, case, warm_up=1, repetitions=1)
            assert phases.end_to_end < runner.prepare(text, case).seconds
        finally:
            runner.close()
            case.close()


def test_without_its_part_for_cuda_a_gpu_is_missing_with_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = backend._nvidia_driver.Driver(version=(13, 0), devices=("NVIDIA H200",), capability=(9, 0))
    monkeypatch.setattr(backend._nvidia_driver, "driver", lambda: driver)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    gpu, cpu = registry.backend("jax").targets()
    assert (gpu.name, gpu.available, cpu.name) == ("nvidia-h200", False, "cpu")
    assert gpu.fix is not None
    assert gpu.fix.endswith('install "jax[cuda13]"')


def test_without_jax_the_reason_and_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    (target,) = registry.backend("jax").targets()
    assert isinstance(target, Target)
    assert target.reason is not None
    assert re.search("JAX", target.reason)
    assert target.fix is not None
    assert "jax" in target.fix


def test_a_callers_settings_of_jax_change_no_answer_and_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {
        "NUMPY_RANK_PROMOTION": "raise", "NUMPY_DTYPE_PROMOTION": "strict", "DEFAULT_MATMUL_PRECISION": "bfloat16",
        "DEBUG_NANS": "1", "DEBUG_INFS": "1", "DISABLE_JIT": "1", "ENABLE_X64": "0",
    }  # fmt: skip
    script = """
import numpy as np
import jax
import py_backends as pb
before = str(jax.config.values)
rng = np.random.default_rng(1)
at, position = (rng.standard_normal((m, 3)).astype("f4") for m in (5, 7))
mass = np.ones(7, "f4")
a = np.array([np.nan, np.inf, 1.0])
answers = [pb.nbody(at, position, mass, backend="jax"), pb.vecadd(a, a, backend="jax"),
           pb.heat(np.ones((5, 6), "f4"), steps=3, backend="jax"), pb.dot(a, a, backend="jax")]
print([each.tobytes().hex() for each in answers])
print(str(jax.config.values) == before)
"""
    plain = run_python("-c", script)
    for name, value in settings.items():
        monkeypatch.setenv(f"JAX_{name}", value)
    prepared = run_python("-c", script)
    assert (plain.returncode, prepared.returncode) == (0, 0), plain.stderr + prepared.stderr
    assert prepared.stdout == plain.stdout
    assert plain.stdout.endswith("True\n")
