"""Kernels on NumPy and on faults: the suite's kinds of trials pass right answers, and refuse wrong ones.

All in this process, and for every kernel that there is: what the suite asks of backends is asked of answers here. A new
kernel's wrong answers lie in its folder (kernels/KERNEL/faults.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import threadpoolctl
from faults import answers
from faults.answers import Wrong

from py_backends import registry
from py_backends.conformance.running import Answered
from py_backends.conformance.trials import Kind, Trial, answered, chosen, of_kernel

pytestmark = pytest.mark.stamped

Tried = tuple[str, Kind[Trial], str]
"""A kernel, a kind of its trials, and a number format."""


def tried() -> Iterator[Tried]:
    """All that a quick run of the suite tries."""
    for kernel in registry.kernel_names():
        for dtype in registry.problem(kernel).dtypes:
            for kind in answers.kinds(kernel):
                if chosen(kind, kernel, dtype, quick=True):
                    yield kernel, kind, dtype


def of_answers() -> Iterator[Any]:
    """What is tried, first with all that is right, then with each fault: whose cases `answered` keeps."""
    for kernel, kind, dtype in tried():
        yield pytest.param(kernel, kind, dtype, None, id=f"{kernel}-{dtype}-{kind.name}")
        for fault in answers.wrong(kernel):
            if kind.name in fault.kinds and dtype in fault.dtypes:
                yield pytest.param(kernel, kind, dtype, fault, id=f"{kernel}: {fault.name}-{dtype}-{kind.name}")


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """For BLAS: threads that wait for each other cost more than these small products."""
    with threadpoolctl.threadpool_limits(1):
        yield


def cases(kernel: str, kind: Kind[Trial], dtype: str) -> list[Answered]:
    return list(answered(kernel, dtype, tuple(chosen(kind, kernel, dtype, quick=True))).values())


@pytest.mark.parametrize(("kernel", "kind", "dtype", "fault"), list(of_answers()))
def test_right_answers_pass_and_wrong_ones_fail(
    kernel: str, kind: Kind[Trial], dtype: str, fault: Wrong | None
) -> None:
    problem, every = registry.problem(kernel), cases(kernel, kind, dtype)
    if fault:
        answer = fault.made()
        assert any(answers.reason(answer, case, problem) for case in every), "nobody sees it"
        return
    for name, (answer, dtypes) in answers.right(kernel).items():
        for case in every if dtype in dtypes else ():
            assert answers.reason(answer, case, problem) is None, (name, case.trial.name)


@pytest.mark.parametrize("kernel", registry.kernel_names())
def test_a_fault_is_seen_in_every_format_and_by_kinds_that_there_are(kernel: str) -> None:
    there = {(kind.name, dtype) for of_name, kind, dtype in tried() if of_name == kernel}
    for fault in answers.wrong(kernel):
        seen = {(kind, dtype) for kind in fault.kinds for dtype in fault.dtypes} & there
        assert {kind for kind, _ in seen} == fault.kinds, fault.name
        assert {dtype for _, dtype in seen} == set(fault.dtypes), fault.name


@pytest.mark.parametrize("kernel", registry.kernel_names())
def test_every_kind_of_its_own_sees_a_fault(kernel: str) -> None:
    seen = {kind for fault in answers.wrong(kernel) for kind in fault.kinds}
    assert {kind.name for kind in of_kernel(kernel).kinds} <= seen


@pytest.mark.parametrize(
    ("name", "of_kind", "words"),
    [
        ("inputs are rounded", "precision", "which is exact in any order"),
        ("an array has one exponent", "scales", "is right, within"),
    ],
)
def test_the_reason_is_told(name: str, of_kind: str, words: str) -> None:
    (fault,) = (each for each in answers.wrong("matmul") if each.name == name)
    (kind,) = (each for each in answers.kinds("matmul") if each.name == of_kind)
    reasons = [
        answers.reason(fault.made(), case, registry.problem("matmul")) for case in cases("matmul", kind, "float32")
    ]
    assert words in next(filter(None, reasons))
