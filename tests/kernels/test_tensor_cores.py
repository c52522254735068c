"""The tuned CUDA matmul where warps multiply matrices, in all formats but float32: emulated, on the CPU.

Faults that only such a kernel can have are planted in scratch copies of its files, and cases of the conformance suite
must notice them. test_cuda_compiles tells what the compiler makes of the same files for GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import nightly
from faults.table import Change, planted_by

from py_backends import registry
from py_backends.backend import cuda
from py_backends.conformance.formats import NARROW
from py_backends.conformance.running import verdict
from py_backends.conformance.selection import all_kinds_of
from py_backends.conformance.trials import answered, chosen
from py_backends.contract import Array
from py_backends.kernel_text import KernelText
from py_backends.results.check import check_output

MATMUL = registry.problem("matmul")
TEXT = registry.kernel_texts("matmul", "cuda")["tuned"]
pytestmark = [pytest.mark.slow, pytest.mark.cuda, pytest.mark.stamped(*TEXT.files)]
WARPS, WARPGROUPS = "WARPS", "WARPGROUPS"
"""The macros for tensor cores in float64 too, and for instructions of a warpgroup."""
SHAPES = [
    # one block with small tiles, of 64 x 64 and 64 bytes deep, and their edges; rows of which multiples of 16 and of 4
    # bytes are aligned, and none
    *[(64, 64, 64), (64, 64, 32), (5, 3, 7), (33, 17, 0), (1, 66, 68), (66, 1, 20), (63, 65, 33), (16, 48, 96)],
    # large tiles, of 128 x 128, from two on
    *[(129, 128, 64), (128, 144, 80), (130, 132, 36), (131, 127, 97), (256, 256, 160)],
    # more slices than are in shared memory at once: at most 4, 128 bytes deep
    *[(40, 72, 656), (129, 128, 656)],
]


class Emulated:
    """A text in a number format, as a function of two matrices."""

    def __init__(self, text: KernelText, dtype: str, macros: Sequence[str] = ()) -> None:
        self._device = Emulation(macros)
        self._launch = self._device.prepare(text, np.dtype(dtype))

    def __call__(self, a: Array, b: Array) -> Array:
        (m, k), n = a.shape, b.shape[1]
        c = np.full(m * n, -77, MATMUL.result_dtype(a.dtype))
        arrays = [np.ascontiguousarray(a).reshape(-1), np.ascontiguousarray(b).reshape(-1), c]
        buffers = [self._device.upload(array) for array in arrays]
        self._launch(buffers, (m, n, k))
        self._device.wait()
        self._device.download(buffers[-1], c)
        return c.reshape(m, n)


class Emulation(cuda.Emulation):
    """With more macros."""

    def __init__(self, macros: Sequence[str]) -> None:
        super().__init__(cuda._cpu(), 2)
        self._macros = macros

    def compiled(self, source: Any, dtype: Any, names: Any, prelude: str = "", macros: Sequence[str] = ()) -> Any:
        return super().compiled(source, dtype, names, prelude, [*macros, *self._macros])


def wrong_shapes(computed: Emulated, dtype: str) -> Iterator[str]:
    for m, n, k in SHAPES:
        draw = np.random.default_rng(k)
        a, b = (3 * draw.standard_normal(shape) for shape in ((m, k), (k, n)))
        inputs = [array.astype(dtype) for array in (a, b)]
        if reason := check_output(computed(*inputs), MATMUL.reference(inputs), MATMUL.rule).reason:
            yield f"{m}x{n}x{k}: {reason}"


@pytest.mark.parametrize("dtype", ["bfloat16", nightly("float16"), nightly("int8"), "float64"])
def test_right_at_the_edges_of_tiles(dtype: str) -> None:
    assert list(wrong_shapes(Emulated(TEXT, dtype, [WARPS]), dtype)) == []


@pytest.mark.parametrize("dtype", [nightly("bfloat16"), nightly("float16"), "int8"])
def test_right_where_warpgroups_multiply(dtype: str) -> None:
    """As on compute capability 9.0."""
    assert list(wrong_shapes(Emulated(TEXT, dtype, [WARPGROUPS]), dtype)) == []


@pytest.mark.parametrize("dtype", [nightly(dtype) for dtype in (*NARROW, "float64")])
def test_right_without_tensor_cores(dtype: str) -> None:
    """As before compute capability 8.0, where narrow elements are widened."""
    assert list(wrong_shapes(Emulated(TEXT, dtype, ["WITHOUT_TENSOR_CORES"]), dtype)) == []


def planted(fault: Change, folder: Path) -> KernelText:
    """The faulty text, in folders as it has them. What is planted without kinds concerns large tiles alone."""
    return replace(TEXT, path=fault.faulty_kernels(folder) / TEXT.kernel / TEXT.variant / TEXT.path.name)


@pytest.mark.parametrize(
    ("fault", "dtype"),
    [
        pytest.param(fault, dtype, marks=pytest.mark.nightly, id=f"{fault.name}-{dtype}")
        for fault in planted_by("tensor_cores")
        for dtype in fault.dtypes
    ],
)
def test_a_planted_fault_is_noticed(fault: Change, dtype: str, tmp_path: Path) -> None:
    computed = Emulated(planted(fault, tmp_path), dtype, fault.macros)
    for kind in fault.kinds:
        assert noticed(computed, kind, dtype), kind
    assert fault.kinds or any(wrong_shapes(computed, dtype))


def noticed(computed: Emulated, kind: str, dtype: str) -> bool:
    """Whether a case of that kind in a quick run finds a kernel wrong."""
    (of_name,) = (each for each in all_kinds_of("matmul") if each.name == kind)
    cases = answered("matmul", dtype, tuple(chosen(of_name, "matmul", dtype, quick=True))).values()
    return any(verdict(computed(*case.inputs), case, MATMUL.rule) for case in cases)
