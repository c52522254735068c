"""The emulation of CUDA notices what is wrong with the kernels between the lecture's matmul and the tuned one.

Each fault is one that a learner makes: a barrier, a wait or a bound too few. On a GPU some of them pass by luck.
"""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest
from conftest import targets_of
from faults.table import Change, planted_by

from py_backends import contract, registry
from py_backends.harness.case import Case
from py_backends.kernel_text import KernelText

pytestmark = [pytest.mark.cuda, pytest.mark.nightly]  # each fault compiles a kernel anew

SIZES = ((129, 131, 41), (129, 132, 41))
"""Ragged in every size, and with rows of c that begin at multiples of 16 bytes."""


@pytest.fixture(scope="module")
def device() -> contract.Device:
    """In this process: none of these faults leaves the arrays and shared memory."""
    target = targets_of("cuda")[0]
    if not target.emulated:
        pytest.skip("a GPU may hide these faults")
    return registry.backend("cuda").open(target.name, 2)


@pytest.mark.parametrize("fault", planted_by("cuda_steps"), ids=attrgetter("name"))
def test_a_fault_is_noticed(device: contract.Device, tmp_path: Path, fault: Change) -> None:
    assert what_is_wrong(device, fault.faulty_text(tmp_path)) is not None


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
