"""The emulation of CUDA notices what is wrong with the kernels between the lecture's matmul and the tuned one.

Each fault is one that a learner makes: a barrier, a wait or a bound too few. On a GPU some of them pass by luck.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import targets_of

from py_backends import contract, registry
from py_backends.harness.case import Case
from py_backends.kernel_text import KernelText

pytestmark = [pytest.mark.cuda, pytest.mark.nightly]  # each fault compiles a kernel anew

STEPS = registry.kernel_texts("matmul", "cuda")
BOTH, NOBODY, ALL = "__syncthreads();  // both", "__syncthreads();  // nobody", "__syncthreads();  // everybody"
WAIT, END = "copies.wait<slices - 2>()", "  copies.end_group();\n}\n\n/// Adds"
END_OF_COPIER = "    copies.end_group();\n"
SIZES = ((129, 131, 41), (129, 132, 41))
"""Ragged in every size, and with rows of c that begin at multiples of 16 bytes."""
FAULTS = [
    ("staged_copies", WAIT, "copies.wait<slices - 1>()"),
    ("strided_reads", "p < k", "p < k - 1"),
    ("shared_tiles", BOTH, "// both"),
    ("shared_tiles", NOBODY, "// nobody"),
    ("shared_tiles", "p + row < k && ", ""),
    ("several_sums", BOTH, "// both"),
    ("several_sums", NOBODY, "// nobody"),
    ("several_sums", "p + row + r < k && ", ""),
    ("register_tiles", "__syncthreads();  // the slice", "// the slice"),
    ("register_tiles", NOBODY, "// nobody"),
    ("register_tiles", "p + q < k && ", ""),
    ("staged_copies", ALL, "// everybody"),
    ("staged_copies", WAIT, "copies.wait<slices>()"),
    ("staged_copies", END, "}\n\n/// Adds"),
    ("staged_copies", "p + q < k && ", ""),
    ("vector_reads", ALL, "// everybody"),
    ("vector_reads", "stride_down + r % vector", "stride_down"),
    ("to_and_fro", "column[r] * row[s]", "column[t] * row[s]"),
    ("kept_addresses", WAIT, "copies.wait<slices>()"),
    ("kept_addresses", END_OF_COPIER, ""),
    ("kept_addresses", ", b += depth_at_once * n", ""),
    ("larger_tiles", WAIT, "copies.wait<slices - 1>()"),
    ("vector_copies", "thread % chunks * width", "thread % chunks"),
    ("two_tile_sizes", "__syncthreads();  // all", "// all"),
    ("tiles_in_bands", "least(band, down - above)", "band"),
    ("reads_ahead", "__syncthreads();  // all have copied the next", "// the next"),
    ("reads_ahead", "__syncthreads();  // all have copied the first", "// the first"),
    ("reads_ahead", "(q + 1) % depth)", "q)"),
]


@pytest.fixture(scope="module")
def device() -> contract.Device:
    """In this process: none of these faults leaves the arrays and shared memory."""
    target = targets_of("cuda")[0]
    if not target.emulated:
        pytest.skip("a GPU may hide these faults")
    return registry.backend("cuda").open(target.name, 2)


@pytest.mark.parametrize(("variant", "old", "new"), FAULTS)
def test_a_fault_is_noticed(device: contract.Device, tmp_path: Path, variant: str, old: str, new: str) -> None:
    text = STEPS[variant]
    assert old in text.text
    path = tmp_path / text.path.name
    path.write_text(text.text.replace(old, new), encoding="utf-8")
    assert what_is_wrong(device, replace(text, path=path)) is not None


def what_is_wrong(device: contract.Device, text: KernelText) -> str | None:
    """With the results of a kernel for a few tiles; None where they are right."""
    launch = device.prepare(text, np.dtype("float32"))
    reasons = (what_is_wrong_at(sizes, device, text, launch) for sizes in SIZES)
    return next((reason for reason in reasons if reason is not None), None)


def what_is_wrong_at(
    sizes: tuple[int, ...], device: contract.Device, text: KernelText, launch: contract.Launch
) -> str | None:
    case = Case(text.problem, sizes, np.dtype("float32"), seed=5)
    case.poison()
    arrays = [case._part(at, span.first, span.size + span.zone) for at, span in enumerate(case.spans)]
    buffers = [device.upload(array) for array in arrays]
    launch(buffers, sizes)
    device.wait()
    device.download(buffers[-1], arrays[-1])
    reason = case.check_output().reason
    case.close()
    return reason
