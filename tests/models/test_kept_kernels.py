"""Kernels of each backend that compiles at run time: loaded where nothing changed, compiled where anything did."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import CLONE, LONGEST, environment
from conftest import targets_of

from py_backends import registry
from py_backends.backend import _kernel_keys, _numba, _sycl, opencl
from py_backends.contract import Device
from py_backends.kernel_text import KernelText
from py_backends.system import kernel_store
from py_backends.workers.runner import Runner

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
WHERE = {"sycl": "intel-cpu", "opencl": "intel-cpu", "cuda": "emulated", "numba_cpu": "cpu"}


def marked(*names: str) -> list[Any]:
    return [pytest.param(name, marks=getattr(pytest.mark, name)) for name in names]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(autouse=True)
def _placed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernel_store.PLACE, str(folder))


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Device:
    backend = request.getfixturevalue("backend")
    if WHERE[backend] not in {target.name for target in targets_of(backend) if target.available}:
        pytest.skip(f"{backend}: its target {WHERE[backend]} is not here")
    return registry.backend(backend).open(WHERE[backend], 2)


def lecture(backend: str) -> KernelText:
    return registry.kernel_texts("vecadd", backend)["lecture"]


def computed(device: Device, text: KernelText, dtype: np.dtype[Any] = FLOAT32) -> tuple[list[bool], list[float]]:
    """Whether the parts of the kernel had been kept, and what it makes of 1 + 2, 2 + 2 and 3 + 2."""
    with kernel_store.watched() as found:
        launch = device.prepare(text, dtype)
    arrays = np.arange(1, 4, dtype=dtype), np.full(3, 2, dtype), np.zeros(3, dtype)
    buffers = [device.upload(arrays[0]), device.upload(arrays[1]), device.allocate(arrays[2])]
    launch(buffers, (3,))
    device.wait()
    device.download(buffers[2], arrays[2])
    for buffer in buffers:
        device.release(buffer)
    return found, arrays[2].tolist()


RIGHT, DIFFERENCES = [3.0, 4.0, 5.0], [-1.0, 0.0, 1.0]


def name(device: Device, text: KernelText, dtype: np.dtype[Any] = FLOAT32) -> str:
    """By what name the kernel would be looked for. Nothing is compiled."""

    class Looked(Exception):
        pass

    def look(name: str | None, *_: object) -> Any:
        raise Looked(name)

    with pytest.MonkeyPatch.context() as patch:
        if hasattr(type(device), "_compiles_for_avx_alone"):  # asks the compiler, too
            patch.setattr(type(device), "_compiles_for_avx_alone", False)
        patch.setattr(kernel_store, "kept", look)
        with pytest.raises(Looked) as looked:
            device.prepare(text, dtype)
    assert looked.value.args[0] is not None
    return str(looked.value.args[0])


def copied(text: KernelText, folder: Path, old: str, new: str) -> KernelText:
    """The source in another folder, beside what it includes, with some of it replaced."""
    place = folder / "vecadd" / "lecture" / text.path.name
    place.parent.mkdir(parents=True, exist_ok=True)
    assert old in text.text
    place.write_text(text.text.replace(old, new), encoding="utf-8")
    formats = text.path.parents[2] / "formats.hpp"
    (folder / formats.name).write_bytes(formats.read_bytes())
    return replace(text, path=place)


@pytest.mark.slow
@pytest.mark.parametrize("backend", marked(*WHERE))
def test_are_compiled_once_for_any_number_of_threads(backend: str, device: Device) -> None:
    """By Numba, once a process: it is asked in others below."""
    text = lecture(backend)
    assert computed(device, text)[1] == RIGHT
    again, right = computed(device, text)
    assert (all(again), right) == (True, RIGHT)
    on_one = registry.backend(backend).open(WHERE[backend], 1)
    again, right = computed(on_one, text)
    assert (all(again), right) == (True, RIGHT)


@pytest.mark.slow
@pytest.mark.parametrize("backend", marked("opencl", "sycl"))
class TestInFiles:
    def test_of_another_text_are_others(self, backend: str, device: Device, tmp_path: Path) -> None:
        """As a mutant is, or what somebody edits."""
        mutant = copied(lecture(backend), tmp_path, "+ widen", "- widen")
        computed(device, lecture(backend))
        found, right = computed(device, mutant)
        assert (found[-1], right) == (False, DIFFERENCES)

    def test_that_are_damaged_are_compiled_again(self, backend: str, device: Device, folder: Path) -> None:
        computed(device, lecture(backend))
        for file in folder.iterdir():
            whole = bytearray(file.read_bytes())
            whole[len(whole) // 2] ^= 255
            file.write_bytes(whole)
        found, right = computed(device, lecture(backend))
        assert (found[-1], right) == (False, RIGHT)
        found, right = computed(device, lecture(backend))
        assert (found[-1], right) == (True, RIGHT)

    def test_of_another_dtype_or_driver_or_build_of_it_are_others(
        self, backend: str, device: Device, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text, libraries = lecture(backend), _kernel_keys.of_system()
        names = [name(device, text), name(device, text, FLOAT64)]
        of, version = (opencl, "_version") if backend == "opencl" else (_sycl, "version")
        monkeypatch.setattr(of, version, lambda _: "driver 2099.1")
        names.append(name(device, text))
        monkeypatch.undo()
        assert "libintelocl.so" in libraries
        changed = libraries.replace("libintelocl.so", "libintelocl.so 9")
        monkeypatch.setattr(_kernel_keys, "of_system", lambda: changed)
        names.append(name(device, text))
        monkeypatch.undo()
        monkeypatch.setenv("CL_CONFIG_CPU_TARGET_ARCH", "corei7")
        names.append(name(device, text))
        assert len(set(names)) == len(names)


@pytest.mark.slow
@pytest.mark.sycl
@pytest.mark.parametrize("backend", ["sycl"])
def test_what_a_source_includes_counts(backend: str, device: Device, tmp_path: Path) -> None:
    """Headers are read by the compiler, not by us."""
    text = copied(lecture(backend), tmp_path, "+ widen", "MINUS widen")
    text = copied(text, tmp_path, '#include "../../formats.hpp"', '#include "../../formats.hpp"\n#include "sign.hpp"')
    sign = text.path.with_name("sign.hpp")
    sign.write_text("#define MINUS +\n", encoding="utf-8")
    assert computed(device, text) == ([False], RIGHT)
    sign.write_text("#define MINUS -\n", encoding="utf-8")
    assert computed(device, text) == ([False], DIFFERENCES)


@pytest.mark.slow
@pytest.mark.sycl
@pytest.mark.parametrize("backend", ["sycl"])
def test_what_is_changed_while_it_is_compiled_is_not_kept(
    backend: str, device: Device, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, text = list(folder.iterdir()), copied(lecture(backend), tmp_path, "+ widen", "- 2 * widen")
    files_read, header = _kernel_keys.files_read, tmp_path / "formats.hpp"

    def change(source: Path, content: bytes) -> list[bytes] | None:
        read = files_read(source, content)
        header.write_text(f"{header.read_text(encoding='utf-8')}\n// changed", encoding="utf-8")
        return read

    monkeypatch.setattr(_kernel_keys, "files_read", change)
    assert computed(device, text)[0] == [False]
    assert list(folder.iterdir()) == before


@pytest.mark.cuda
@pytest.mark.parametrize("backend", ["cuda"])
def test_the_emulation_of_cuda_has_its_prelude_in_the_key(
    backend: str, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = name(device, lecture(backend))
    read = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda path, **how: read(path, **how) + "//" * (path.suffix == ".hpp"))
    assert name(device, lecture(backend)) != before


NUMBA = """
import numpy as np
import py_backends as pb
from py_backends.system import kernel_store
a = np.arange(1, 4, dtype="f4")
with kernel_store.watched() as found:
    c = pb.vecadd(a, np.full(3, 2, "f4"), backend="numba_cpu", variant="lecture")
print(found, c.tolist())
"""


@pytest.mark.slow
@pytest.mark.numba_cpu
class TestNumba:
    @staticmethod
    def made(folder: Path) -> str:
        command = [sys.executable, "-c", NUMBA]
        known = environment(**{kernel_store.PLACE: str(folder)})
        run = subprocess.run(command, cwd=CLONE, env=known, capture_output=True, text=True, timeout=LONGEST, check=True)
        return run.stdout.strip()

    def test_another_process_loads_what_one_has_compiled(self, tmp_path: Path) -> None:
        assert self.made(tmp_path) == f"[False] {RIGHT}"
        assert self.made(tmp_path) == f"[True] {RIGHT}"

    def test_the_text_of_the_distribution_and_values_of_the_machine_count(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        device, text = (
            registry.backend("numba_cpu").open("cpu", 2),
            registry.kernel_texts("vecadd", "numba_cpu")["tuned"],
        )
        module = text.load()
        monkeypatch.setattr(module.vecadd, "overloads", {})
        names = [name(device, text), name(device, text)]
        monkeypatch.setattr(module, "CACHE", 1 << 20)
        names.append(name(device, text))
        monkeypatch.undo()
        monkeypatch.setattr(module.vecadd, "overloads", {})
        sources = _numba._sources
        monkeypatch.setattr(_numba, "_sources", lambda: (sources() or b"") + b"another")
        names.append(name(device, text))
        assert names[0] == names[1]
        assert len(set(names)) == 3

    @pytest.mark.parametrize(
        "lacking", ["numba.core.compiler.CompileResult._reduce", "py_backends.system.cpu.identity"]
    )
    def test_what_cannot_be_kept_is_compiled(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lacking: str
    ) -> None:
        """Private parts of Numba may go, and files that the key depends on may be unreadable."""
        monkeypatch.setenv(kernel_store.PLACE, str(tmp_path))
        text = registry.kernel_texts("vecadd", "numba_cpu")["lecture"]
        monkeypatch.setattr(text.load().vecadd, "overloads", {})

        def fail(*_: object) -> None:
            raise OSError

        monkeypatch.setattr(lacking, fail)
        registry.backend("numba_cpu").open("cpu", 2).prepare(text, np.dtype(np.float32))
        assert list(tmp_path.iterdir()) == []

    def test_a_text_that_was_changed_after_it_was_imported_is_not_kept(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert _numba._sources() is not None
        monkeypatch.setattr(_numba, "_SINCE", 0.0)
        assert _numba._sources() is None


@pytest.mark.opencl
def test_a_row_says_that_it_was_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And one for which nothing is compiled does not."""
    monkeypatch.setenv(kernel_store.PLACE, str(tmp_path / "new"))
    if WHERE["opencl"] not in {target.name for target in targets_of("opencl") if target.available}:
        pytest.skip("opencl: Intel's CPU runtime is not here")
    kept = []
    for each in ("opencl", "opencl", "numpy"):
        target = next(target for target in targets_of(each) if target.name == WHERE.get(each, "cpu"))
        runner = Runner(each, target, 2)
        try:
            kept.append(runner.compile(lecture(each), FLOAT32).kept)
        finally:
            runner.close()
    assert kept == [False, True, False]
