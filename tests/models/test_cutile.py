"""cuTile: NVIDIA's compiler takes the sources for GPUs of several generations, and the emulation sees what it must.

That the sources are right in the emulation, the suite says. Whether they run on a GPU, and how fast, nothing shows.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run_python
from test_cuda_compiles import disassembler

import py_backends as pb
from py_backends import registry
from py_backends.backend import cutile
from py_backends.install import pip_install
from py_backends.kernel_text import KernelText

pytestmark = pytest.mark.cutile

ARCHITECTURES = ["sm_80", "sm_90", "sm_100", "sm_120"]
TEXTS = [text for kernel in registry.kernel_names() for text in registry.kernel_texts(kernel, "cutile").values()]
OF_MATRICES = [text for text in TEXTS if text.kernel in ("matmul", "attention")]
TENSOR_CORES = {"sm_80": r"[HI]MMA\.", "sm_90": r"[HI]GMMA\.", "sm_100": r"UTC[HI]MMA\b", "sm_120": r"[HI]MMA\."}
compiles = pytest.mark.skipif(
    importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.tile") is None,
    reason=f"cuTile is not installed (to change that: {pip_install('cutile')})",
)


@cache
def compiled(text: KernelText, dtype: str, architecture: str) -> list[bytes]:
    return cutile.compiled(text, np.dtype(dtype), architecture)


def instructions(text: KernelText, dtype: str, architecture: str, folder: Path) -> str:
    """What the disassembler says of its last kernel."""
    program = disassembler()
    if program is None:
        pytest.skip(f"nvdisasm is not installed (to change that: {pip_install('test')})")
    file = folder / "kernel.cubin"
    file.write_bytes(compiled(text, dtype, architecture)[-1])
    return subprocess.run([program, "-c", file], capture_output=True, text=True, check=True).stdout


@compiles
@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: f"{text.kernel}-{text.variant}")
def test_compiles_in_every_format(text: KernelText, architecture: str) -> None:
    for dtype in text.dtypes:
        made = compiled(text, dtype, architecture)
        assert len(made) == len(text.stages("GPU").kernels)
        assert all(code.startswith(b"\x7fELF") for code in made), dtype


@compiles
@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("text", OF_MATRICES, ids=lambda text: f"{text.kernel}-{text.variant}")
def test_narrow_formats_are_multiplied_by_tensor_cores(text: KernelText, architecture: str, tmp_path: Path) -> None:
    """The tiles of the lecture are too small for those of a warpgroup, and of a whole block."""
    sought = TENSOR_CORES[architecture if text.variant == "tuned" else "sm_80"]
    for dtype in [each for each in text.dtypes if np.dtype(each).itemsize < 4]:
        assert re.search(sought, instructions(text, dtype, architecture, tmp_path)), dtype


@compiles
@pytest.mark.parametrize("architecture", ["sm_80", pytest.param("sm_120", marks=pytest.mark.slow)])
def test_products_of_int8_are_not_added_by_tensor_cores(architecture: str, tmp_path: Path) -> None:
    """Whose sums would stop at the largest int32. What they add to is the register that is always zero."""
    code = instructions(registry.kernel_texts("matmul", "cutile")["tuned"], "int8", architecture, tmp_path)
    summands = [line.split(",")[-1].strip() for line in re.findall(r"\bIMMA\.([^;]*);", code)]
    assert summands
    assert set(summands) == {"RZ"}


EMULATED = """
    import sys
    import numpy as np
    from py_backends import registry
    from py_backends.errors import KernelFault
    from py_backends.results.check import check_output, references_of

    class Changed(type(registry.kernel_texts("matmul", "cutile")["lecture"])):
        def load(self, part=None):
            import types
            code = self.path.read_text(encoding="utf-8")
            assert sys.argv[1] in code
            module = types.ModuleType("changed")
            exec(code.replace(sys.argv[1], sys.argv[2]), module.__dict__)
            return module

    device = registry.backend("cutile").open("emulated", 1)
    text = registry.kernel_texts("matmul", "cutile")["lecture"]
    text = Changed(text.problem, text.variant, text.backend, text.path)
    generator = np.random.default_rng(1)
    m, n, k = 70, 45, 50
    a, b = generator.standard_normal((m, k), np.float32), generator.standard_normal((k, n), np.float32)
    arrays = [a.reshape(-1), b.reshape(-1), np.full(m * n, np.nan, np.float32)]
    buffers = [device.upload(each) for each in arrays]
    try:
        device.prepare(text, a.dtype)(buffers, (m, n, k))
    except KernelFault as fault:
        sys.exit(str(fault))
    (reference,) = references_of(text.problem, [a, b], (m, n, k), a.dtype)
    print(check_output(buffers[-1].reshape(m, n), reference, "componentwise").reason)
"""


class TestEmulation:
    @pytest.mark.parametrize(
        ("right", "wrong", "told"),
        [
            ("TILE = 32", "TILE = 32", "None"),
            ("ct.load(a, (i, p), (TILE, TILE), padding_mode=ZERO)", "ct.load(a, (i, p), (TILE, TILE))", "nan"),
            ("padding_mode=ZERO", "padding_mode=ct.PaddingMode.NEG_INF", "are wrong"),
            ("(p, j)", "(j, p)", "lies outside of an array|are wrong"),
            ("ct.store(c, (i, j), total)", "ct.store(c, (i + 1, j), total)", "lies outside of an array"),
            ("ct.store(c, (i, j), total)", "ct.store(c, (j, i), total)", "lies outside of an array|are wrong"),
            ("TILE = 32", "TILE = 24", "powers of two"),
            ("ct.store(c, (i, j), total)", "ct.store(c, (i, j), total + 0j)", "is stored to an array"),
        ],
    )  # fmt: skip
    def test_sees_what_the_language_leaves_undefined(self, right: str, wrong: str, told: str) -> None:
        run = run_python("-c", textwrap.dedent(EMULATED), right, wrong)
        assert re.search(told, run.stdout + run.stderr), run.stderr

    def test_is_for_checking_only(self) -> None:
        target, *_ = registry.backend("cutile").targets()
        if not target.emulated:
            pytest.skip(f"there is a GPU: {target.device}")
        a: Any = np.ones(3, np.float32)
        with pytest.raises(pb.BackendUnavailable) as refused:
            pb.vecadd(a, a, backend="cutile")
        assert str(target.reason) in refused.value.reason


def test_a_gpu_needs_a_newer_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = cutile._nvidia_driver.Driver(version=(12, 8), devices=("NVIDIA H200",), capability=(9, 0))
    monkeypatch.setattr(cutile._nvidia_driver, "driver", lambda: driver)
    monkeypatch.setattr(cutile, "_load", lambda: None)
    (target,) = registry.backend("cutile").targets()
    assert (target.name, target.available) == ("nvidia-h200", False)
    assert (target.reason, target.fix) == (
        "its driver is too old for cuTile",
        "install NVIDIA's driver 580 or newer",
    )
