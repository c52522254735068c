"""The CUDA texts compile for GPUs of several generations: NVIDIA's own compiler (NVRTC), and no GPU.

The emulation shows that they are right; this, that what it reads is CUDA C++.
"""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cuda.core import ObjectCode, Program, ProgramOptions

from py_backends import registry
from py_backends.backend import _cupy, cuda
from py_backends.kernel_text import KernelText

pytestmark = pytest.mark.cuda

ARCHITECTURES = ["sm_75", "sm_80", "sm_90", "sm_100"]
"""Turing, Ampere, Hopper, Blackwell."""
TEXTS = [text for kernel in registry.kernel_names() for text in registry.kernel_texts(kernel, "cuda").values()]


def compiled(source: str, architecture: str, name: str) -> ObjectCode:
    """Compile an instance of a template to machine code, as CuPy would."""
    options = ProgramOptions(arch=architecture, std="c++17")
    return Program(source, "c++", options).compile("cubin", name_expressions=(name,))


def test_every_kernel_has_a_text() -> None:
    assert {text.kernel for text in TEXTS} == set(registry.kernel_names())


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("type_name", ["float", "double"])
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: f"{text.kernel}-{text.variant}")
def test_compiles_to_machine_code(text: KernelText, type_name: str, architecture: str) -> None:
    name = f"{text.kernel}<{type_name}>"
    cubin = compiled(text.text, architecture, name)
    assert cubin.code.startswith(b"\x7fELF")
    mangled = cubin.symbol_mapping[name]
    assert b".text." + mangled in cubin.code, "the kernel itself is in it, and not only its name"


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("type_name", ["float", "double"])
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: f"{text.kernel}-{text.variant}")
def test_keeps_its_sums_in_registers(text: KernelText, type_name: str, architecture: str) -> None:
    """What does not fit, or is indexed by what only the running kernel knows, would lie in slow memory.

    NVRTC 12.9 keeps there what a tile's inner loop does not need, in float64; NVRTC 13 nothing.
    """
    options = ProgramOptions(arch=architecture, std="c++17", ptxas_options="-v")
    log = io.StringIO()
    program = Program(text.text, "c++", options)
    program.compile("cubin", name_expressions=(f"{text.kernel}<{type_name}>",), logs=log)
    (frame,) = re.findall(r"(\d+) bytes stack frame", log.getvalue())
    assert int(frame) <= 128, log.getvalue()  # a quarter of a thread's sums


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("type_name", ["float", "double"])
def test_what_measures_the_peak_compiles(type_name: str, architecture: str) -> None:
    source, name = _cupy.MULTIPLY_ADD.read_text(encoding="utf-8"), f"multiply_add<{type_name}>"
    assert compiled(source, architecture, name).code.startswith(b"\x7fELF")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_measures_the_peak_computes(dtype: str) -> None:
    """Every chain tends to 2, so that the sum of the 8 says that all of them were gone through."""
    device = cuda.Emulation(cuda._cpu(), 2)
    text = replace(TEXTS[0], path=_cupy.MULTIPLY_ADD)
    prelude = Path(cuda.__file__).with_name("_cuda_on_sycl.hpp").read_text(encoding="utf-8")
    (start,) = device.compiled(text, np.dtype(dtype), ["multiply_add"], prelude)
    constants, sums = np.array([0.5, 1.0], dtype), np.full(128, np.nan, dtype)
    buffers = [device.upload(constants), device.upload(sums)]
    start(buffers, [100], (2, 1, 1), (64, 1, 1))
    device.wait()
    device.download(buffers[1], sums)
    assert sums.tolist() == [16.0] * 128


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: f"{text.kernel}-{text.variant}")
def test_a_text_with_an_error_does_not_compile(text: KernelText) -> None:
    assert text.text.count("blockIdx") >= 1
    with pytest.raises(Exception, match=r"identifier \"blokIdx\" is undefined"):
        compiled(text.text.replace("blockIdx", "blokIdx"), "sm_80", f"{text.kernel}<float>")
