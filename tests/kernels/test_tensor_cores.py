"""The tuned CUDA matmul where warps multiply matrices, in all formats but float32: emulated, on the CPU.

Faults that only such a kernel can have are planted in scratch copies of its files, and cases of the conformance suite
must notice them. test_cuda_compiles tells what the compiler makes of the same files for GPUs.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import nightly

from py_backends import registry
from py_backends.backend import cuda
from py_backends.conformance.formats import NARROW
from py_backends.conformance.running import verdict
from py_backends.conformance.selection import all_kinds_of
from py_backends.conformance.trials import answered, chosen
from py_backends.contract import Array
from py_backends.kernel_text import KernelText
from py_backends.results.check import check_output

pytestmark = [pytest.mark.slow, pytest.mark.cuda]
MATMUL = registry.problem("matmul")
TEXT = registry.kernel_texts("matmul", "cuda")["tuned"]
TENSOR_CORES = "cuda_tensor_cores.hpp"
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


@dataclass(frozen=True)
class Fault:
    """A change to a file of the text, and the kinds of cases that must notice it in a format.

    Without kinds, it concerns large tiles alone, for which the shapes above are there.
    """

    name: str
    old: str
    new: str
    dtypes: tuple[str, ...]
    kinds: tuple[str, ...]
    macros: tuple[str, ...] = ()

    def planted(self, folder: Path) -> KernelText:
        """The faulty text, in folders as it has them."""
        kernels = TEXT.path.parents[2]
        own = folder / TEXT.kernel / TEXT.variant
        own.mkdir(parents=True)
        for file in (*kernels.glob("*.hpp"), *TEXT.path.parent.glob("cuda*")):
            shutil.copy(file, folder / file.relative_to(kernels))
        text = (own / TENSOR_CORES).read_text(encoding="utf-8")
        assert text.count(self.old) == 1, f"{TENSOR_CORES} is no longer what {self.name} was planted in"
        (own / TENSOR_CORES).write_text(text.replace(self.old, self.new), encoding="utf-8")
        return replace(TEXT, path=own / TEXT.path.name)


HALVES = ("float16", "bfloat16")
FAULTS = [
    Fault("a pair of int8 is swapped", "to[0][0] = __byte_perm(matrix[0], matrix[1], 0x6420)",
          "to[0][0] = __byte_perm(matrix[0], matrix[1], 0x6402)", ("int8",), ("depths", "whole-numbers", "shapes")),
    Fault("two halves of b are swapped", "to[1][0] = matrix[2], to[1][1] = matrix[3]",
          "to[1][0] = matrix[3], to[1][1] = matrix[2]", HALVES, ("depths", "whole-numbers", "shapes")),
    Fault("the end of k is dropped", "for (Size p = 0; p < k; p += Tile::depth)",
          "for (Size p = 0; p + Tile::depth <= k; p += Tile::depth)", NARROW, ("depths", "shapes", "long-sums")),
    Fault("the wrong lanes of a", " + lane % 16, 2 * step", " + (lane ^ 1) % 16, 2 * step", NARROW,
          ("depths", "whole-numbers", "shapes")),
    Fault("the wrong lanes of int8's b", "r / 2 * 4 + others * 2 + r % 2;", "r + others * 8;", ("int8",),
          ("depths", "whole-numbers", "shapes")),
    Fault("the wrong columns of sums", "from + 8 + 2 * t", "from + 8 + 2 * (t ^ 1)", HALVES,
          ("depths", "whole-numbers", "shapes")),
    Fault("the wrong columns of int8's sums", "{first[e], second[e], first[e + 1], second[e + 1]}",
          "{first[e], first[e + 1], second[e], second[e + 1]}", ("int8",), ("depths", "whole-numbers", "shapes")),
    Fault("a's end is padded with the next row", "if (e < there) elements", "if (there > 0) elements", HALVES,
          ("depths",)),
    Fault("a slice is multiplied twice", "arrived = arrived + 1 < slices ? arrived + 1 : 0;",
          "arrived = arrived + 1 < slices ? arrived + 1 : 1;", NARROW, ("long-sums",)),
    Fault("the wrong half of a's depth", "e / 2 * 4 + lane % 4)", "(1 - e / 2) * 4 + lane % 4)", ("float64",),
          ("whole-numbers", "shapes"), (WARPS,)),
    Fault("the wrong rows of a", "row + e % 2 * 8 + lane / 4", "row + e % 2 * 8 + (lane / 4 ^ 1)", ("float64",),
          ("whole-numbers", "shapes"), (WARPS,)),
    Fault("chunks are not permuted as a warpgroup reads them", "chunk % of_line ^ permuted",
          "chunk % of_line ^ (permuted ^ 1)", NARROW, ("depths", "whole-numbers", "shapes"), (WARPGROUPS,)),
    Fault("a warpgroup's halves of b are swapped", "b[step][s][1] = half[1][0]", "b[step][s][1] = half[0][1]",
          ("int8",), ("depths", "whole-numbers", "shapes"), (WARPGROUPS,)),
    Fault("a warpgroup multiplies another step of a", "PartOfA::chunks, 2 * step", "PartOfA::chunks, step",
          HALVES, ("depths", "whole-numbers", "shapes"), (WARPGROUPS,)),
    Fault("a warpgroup multiplies another step of int8's a", " Part::chunks, 2 * step", " Part::chunks, step",
          ("int8",), ("depths", "whole-numbers", "shapes"), (WARPGROUPS,)),
    Fault("a warpgroup multiplies another step of b", "b + step * Tile::depth_of_step * 8", "b + step * 8",
          HALVES, ("depths", "whole-numbers", "shapes"), (WARPGROUPS,)),
    Fault("a warpgroup multiplies other rows of a", "64 * r * Tile::PartOfA::chunks", "32 * r * Tile::PartOfA::chunks",
          HALVES, (), (WARPGROUPS,)),
    Fault("a warpgroup multiplies other rows of int8's a", "64 * r * Part::chunks", "32 * r * Part::chunks",
          ("int8",), (), (WARPGROUPS,)),
    Fault("the wrong rows of a warpgroup's sums", "r % 2 * 8 + g;", "(r % 2 ^ 1) * 8 + g;",
          HALVES, ("depths", "whole-numbers", "shapes"), (WARPGROUPS,)),
    Fault("the wrong rows of a warpgroup's sums of int8", "2 * t + r % 2;", "2 * t + (r % 2 ^ 1);",
          ("int8",), ("depths", "whole-numbers", "shapes"), (WARPGROUPS,)),
    Fault("the wrong columns of a warpgroup's sums", "j + 8 * s + 2 * t", "j + 8 * s + 2 * (t ^ 1)",
          HALVES, ("depths", "whole-numbers", "shapes"), (WARPGROUPS,)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "dtype"),
    [
        pytest.param(fault, dtype, marks=pytest.mark.nightly, id=f"{fault.name}-{dtype}")
        for fault in FAULTS
        for dtype in fault.dtypes
    ],
)
def test_a_planted_fault_is_noticed(fault: Fault, dtype: str, tmp_path: Path) -> None:
    computed = Emulated(fault.planted(tmp_path), dtype, fault.macros)
    for kind in fault.kinds:
        assert noticed(computed, kind, dtype), kind
    assert fault.kinds or any(wrong_shapes(computed, dtype))


def noticed(computed: Emulated, kind: str, dtype: str) -> bool:
    """Whether a case of that kind in a quick run finds a kernel wrong."""
    (of_name,) = (each for each in all_kinds_of("matmul") if each.name == kind)
    cases = answered("matmul", dtype, tuple(chosen(of_name, "matmul", dtype, quick=True))).values()
    return any(verdict(computed(*case.inputs), case, MATMUL.rule) for case in cases)
