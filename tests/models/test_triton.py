"""Triton: kernels compile for GPUs of several makers, with none of them here. That they are right, the suite says.

Whether they run on a GPU, and how fast, nothing here shows.
"""

from __future__ import annotations

import re
import sys
from contextlib import nullcontext
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import py_backends as pb
from py_backends import registry
from py_backends.backend import triton
from py_backends.kernel_text import KernelText

pytestmark = pytest.mark.triton

TARGETS = [("cuda", 80), ("cuda", 90), ("cuda", 100), ("hip", "gfx942")]
"""Ampere, Hopper and Blackwell of data centres, and AMD's MI300."""
MOST_SHARED_BYTES = {("hip", "gfx942"): 65_536, ("cuda", 80): 99 * 1024}
"""Of a work group. GPUs for desktops have 99 KiB."""
MATRIX_INSTRUCTIONS = {
    ("cuda", 80): r"mma\.sync\.aligned\.m16n8k",
    ("cuda", 90): r"wgmma\.mma_async",
    ("cuda", 100): r"tcgen05\.mma",
    ("hip", "gfx942"): r"v_mfma_[fi]32_",
}
TEXTS = [text for kernel in registry.kernel_names() for text in registry.kernel_texts(kernel, "triton").values()]
OF_MATRICES = [text for text in TEXTS if text.kernel in ("matmul", "attention")]


@cache
def compiled(text: KernelText, dtype: str, target: tuple[str, int | str]) -> list[Any]:
    return triton.compiled(text, np.dtype(dtype), *target)


def assembly(made: Any) -> str:
    text: str = made.asm["ptx" if "ptx" in made.asm else "amdgcn"]
    return text


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: str(target[1]))
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: f"{text.kernel}-{text.variant}")
class TestCompiles:
    def test_to_machine_code_that_fits(self, text: KernelText, target: tuple[str, int | str]) -> None:
        for dtype in text.dtypes:
            for made in compiled(text, dtype, target):
                assert made.asm["cubin" if target[0] == "cuda" else "hsaco"].startswith(b"\x7fELF")
                assert made.metadata.shared <= MOST_SHARED_BYTES.get(target, MOST_SHARED_BYTES["cuda", 80])

    def test_with_the_arguments_that_a_launch_gives(self, text: KernelText, target: tuple[str, int | str]) -> None:
        """Arrays, sizes, and two pointers that Triton adds."""
        arrays = len(text.problem.inputs) + 1 + (text.stages("GPU").scratch is not None)
        for made in compiled(text, text.dtypes[0], target) if target[0] == "cuda" else ():  # launches are NVIDIA's
            parameters = re.findall(r"\.param \.\w+ ", assembly(made).partition(".entry")[2].partition("{")[0])
            assert len(parameters) == arrays + len(text.problem.parameters) + 2


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: str(target[1]))
@pytest.mark.parametrize("text", OF_MATRICES, ids=lambda text: f"{text.kernel}-{text.variant}")
def test_narrow_formats_are_multiplied_by_matrix_instructions(text: KernelText, target: tuple[str, int | str]) -> None:
    for dtype in [each for each in text.dtypes if np.dtype(each).itemsize < 4]:
        (made,) = compiled(text, dtype, target)
        # The tiles of the lecture are too small for those of a warpgroup, and of a whole block.
        sought = MATRIX_INSTRUCTIONS[target if text.variant == "tuned" or target[0] == "hip" else ("cuda", 80)]
        assert re.search(sought, assembly(made)), f"{dtype} has none"


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: str(target[1]))
def test_float32_keeps_its_digits(target: tuple[str, int | str]) -> None:
    """TF32 has 11 of 24."""
    for text in OF_MATRICES:
        (made,) = compiled(text, "float32", target)
        assert "tf32" not in assembly(made).lower(), f"{text.kernel} {text.variant}"
        assert "xf32" not in assembly(made).lower()


def test_products_of_int8_begin_at_zero_so_that_tensor_cores_never_stop_at_the_largest_number() -> None:
    """The sum of them and what was summed before is one of integers, which wraps around."""
    (made,) = compiled(registry.kernel_texts("matmul", "triton")["tuned"], "int8", ("cuda", 80))
    code = made.asm["ttir"]
    (summand,) = re.findall(r"tt\.dot %\w+, %\w+, (%\w+)", code)
    assert re.search(rf"{summand} = arith\.constant dense<0> : tensor<\d+x\d+xi32>", code)


class TestGpu:
    """A launch on a GPU, with stand-ins for CuPy and Triton."""

    def test_gives_addresses_then_sizes_then_two_pointers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        launched: list[Any] = []
        made = SimpleNamespace(
            asm={"cubin": b"code"}, metadata=SimpleNamespace(name="vecadd", shared=1024, num_warps=4)
        )
        monkeypatch.setattr(triton, "compiled", lambda *asked: asked[2:] == ("cuda", 90) and [made])
        gpu = object.__new__(triton.Gpu)
        gpu._gpu = Capability()
        monkeypatch.setattr(gpu, "recorded", lambda launch: launch)

        def loaded(*what: Any) -> Any:
            assert what == (b"code", "vecadd", 1024)
            return lambda *how: launched.append(how)

        monkeypatch.setattr(gpu, "loaded", loaded)
        launch = gpu.prepare(registry.kernel_texts("vecadd", "triton")["lecture"], np.dtype(np.float32))
        launch([SimpleNamespace(array=name) for name in "abc"], [2049])
        assert launched == [((3,), (128,), ("a", "b", "c", 2049, 0, 0))]


class Capability(nullcontext[None]):
    """A device of CuPy."""

    compute_capability = "90"


class TestInterpreter:
    def test_is_for_checking_only(self) -> None:
        (target,) = registry.backend("triton").targets()
        if not target.emulated:
            pytest.skip(f"there is a GPU: {target.device}")
        a = np.ones(3, np.float32)
        with pytest.raises(pb.BackendUnavailable) as refused:
            pb.vecadd(a, a, backend="triton")
        assert str(target.reason) in refused.value.reason
        with pytest.raises(pb.BackendUnavailable, match="in a process that was started for it"):
            registry.backend("triton").open("emulated", 1)

    def test_an_access_outside_of_the_arrays_is_a_fault(self) -> None:
        """Behind an array lies a guard zone, and what comes of it may be masked later."""
        bounds = triton.Bounds()
        array = np.zeros(10, np.float32)
        bounds.set([array], [8])
        read = bounds.checked(lambda *arguments: int(arguments[-1].data.sum()), mask_at=1)

        def at(*places: int) -> Any:
            return SimpleNamespace(data=np.uint64(array.ctypes.data) + np.array(places, np.uint64) * np.uint64(4))

        def where(*there: bool) -> Any:
            return SimpleNamespace(data=np.array(there))

        assert read(None, at(0, 7), where(True, True)) == 2
        assert read(None, at(7, 8), where(True, False)) == 1
        with pytest.raises(IndexError, match="outside of its arrays, at 1 places"):
            read(None, at(7, 8), where(True, True))


def test_without_triton_the_reason_and_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    target, *_ = registry.backend("triton").targets()
    assert target.reason == "Triton is not installed"
    assert "triton" in (target.fix or "")
