"""On a CPU that is not x86-64: what is missing says so, and no fix names a wheel that there is not.

`.ci/aarch64` runs the project on such a CPU. Here `platform` says what one would, and what has no wheels for it is
hidden.
"""

from __future__ import annotations

import importlib.metadata
import platform
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement

from py_backends.backend import _mkl, _nvidia_driver, _onednn, cuda, mkl, onednn, opencl, sycl
from py_backends.contract import Target
from py_backends.install import pip_install

ROOT = Path(__file__).parents[2]
FOR_X86_64_ALONE = {"dpctl", "intel-cmplr-lib-rt", "intel-opencl-rt", "mkl", "onednn", "pocl-binary-distribution"}


class WithoutDpctl:
    @staticmethod
    def find_spec(name, *_):
        if name == "dpctl":
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)


@pytest.fixture(autouse=True)
def _aarch64(monkeypatch: pytest.MonkeyPatch) -> None:
    default_environment()  # it keeps what it sees first, which other tests are to see too
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    for name in [name for name in sys.modules if name.partition(".")[0] == "dpctl"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [WithoutDpctl, *sys.meta_path])
    driver = _nvidia_driver.Driver(reason="no NVIDIA driver", fix="needs an NVIDIA GPU")
    monkeypatch.setattr(_nvidia_driver, "driver", lambda: driver)
    for loaded in (_mkl, _onednn):
        monkeypatch.setattr(loaded, "library", loaded.library.__wrapped__)


def only(targets: list[Target]) -> Target:
    (target,) = targets
    assert not target.available
    return target


def assert_made_for_another(reason: str | None, what: str) -> None:
    """It names the library, the CPU that its wheels are for, and this one."""
    assert reason is not None
    assert reason.startswith(f"{what} ")
    assert ("x86-64" in reason, "aarch64" in reason) == (True, True)


@pytest.mark.parametrize(("backend", "who"), [(mkl, "MKL"), (onednn, "oneDNN")])
def test_intels_libraries_are_for_x86_64(backend: Any, who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> list[importlib.metadata.PackagePath]:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "files", none)
    target = only(backend.Backend().targets())
    assert_made_for_another(target.reason, who)
    assert target.fix is None


def test_sycl_has_no_wheels() -> None:
    target, tiles = sycl.Backend().targets()
    assert (target.name, target.available, target.fix) == ("pocl", False, None)
    assert (tiles.name, tiles.reason) == ("amx", target.reason)
    assert_made_for_another(target.reason, "dpctl")


def test_cuda_is_not_emulated() -> None:
    target = only(cuda.Backend().targets())
    assert target.name == "emulated"
    driver, _, emulation = (target.reason or "").partition(": ")
    assert "NVIDIA driver" in driver
    assert_made_for_another(emulation, "dpctl")
    assert "NVIDIA GPU" in (target.fix or "")


def test_opencl_needs_a_driver_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyopencl", reason=f"pyopencl is not installed (to change that: {pip_install('opencl')})")
    monkeypatch.setattr(opencl, "_platforms", list)
    target = only(opencl.Backend().targets())
    assert target.name == "pocl"
    assert "OpenCL device" in (target.reason or "")
    assert "pocl-opencl-icd" in (target.fix or "")


def test_extras_ask_for_nothing_that_has_no_wheel() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    environment = {"platform_machine": "aarch64", "platform_system": "Linux"}
    lines = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *(line for extra in project["project"]["optional-dependencies"].values() for line in extra),
    ]
    asked = {each.name for each in map(Requirement, lines) if each.marker is None or each.marker.evaluate(environment)}
    assert not asked & FOR_X86_64_ALONE
    # Numba's simulator loads what this one brings, on every architecture.
    assert {"numba-cuda", "nvidia-cuda-runtime"} <= asked
