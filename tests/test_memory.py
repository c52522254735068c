"""The memory that a case shares with its workers: guarded, the same for equal seeds, gone with its holders."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from py_backends import _discovery
from py_backends._contract import Array
from py_backends.harness.case import Case
from py_backends.harness.memory import SharedArray, guard_elements, page_aligned_copy

MATMUL, VECADD = _discovery.problem("matmul"), _discovery.problem("vecadd")
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


class TestSharedArray:
    def test_what_one_side_writes_the_other_reads(self) -> None:
        ours = SharedArray.create(10, 4, FLOAT32)
        theirs = SharedArray.attach(os.dup(ours.descriptor), 10, 4, FLOAT32, writable=True)
        ours.content[:] = np.arange(10)
        theirs.guard[:] = 7
        np.testing.assert_array_equal(theirs.content, np.arange(10))
        np.testing.assert_array_equal(ours.whole[10:], [7, 7, 7, 7])
        ours.close()
        theirs.close()

    def test_inputs_cannot_be_written_on_the_other_side(self) -> None:
        ours = SharedArray.create(10, 4, FLOAT64)
        theirs = SharedArray.attach(os.dup(ours.descriptor), 10, 4, FLOAT64, writable=False)
        with pytest.raises(ValueError, match="read-only"):
            theirs.content[0] = 1
        ours.close()
        theirs.close()

    def test_it_has_no_name_and_its_descriptor_is_not_inherited(self) -> None:
        shared = SharedArray.create(10, 4, FLOAT32)
        assert str(Path(f"/proc/self/fd/{shared.descriptor}").readlink()).startswith("/memfd:")
        assert not os.get_inheritable(shared.descriptor)
        shared.close()
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(shared.descriptor)

    def test_an_empty_array_has_a_guard_all_the_same(self) -> None:
        shared = SharedArray.create(0, 8, FLOAT32)
        assert (shared.content.size, shared.guard.size) == (0, 8)
        shared.close()

    @pytest.mark.parametrize("sizes", [(), (0,), (1,), (509,), (3, 700, 5), (2**40,)])
    def test_guards_take_one_row_too_many_but_no_endless_memory(self, sizes: tuple[int, ...]) -> None:
        guard = guard_elements(sizes)
        assert guard > min(max(sizes, default=0), 2**16)
        assert guard <= 2**17


@pytest.fixture
def case() -> Iterator[Case]:
    made = Case(VECADD, (100,), FLOAT32, seed=5)
    yield made
    made.close()


def arrays_of(case: Case) -> list[Array]:
    """All arrays of a case with their guards, as a worker attaches them."""
    return [
        SharedArray.attach(descriptor, elements, case.guard, case.dtype, writable=True).whole
        for descriptor, elements in zip(case.descriptors, case.elements, strict=True)
    ]


def test_a_result_in_its_place_passes(case: Case) -> None:
    a, b, c = arrays_of(case)
    case.poison()
    c[:100] = a[:100] + b[:100]
    assert case.judge().check.passed


@pytest.mark.parametrize("beyond", [0, 1, 99])
@pytest.mark.parametrize("value", [0.0, 1.0, np.nan])
def test_a_write_past_the_end_is_seen(case: Case, beyond: int, value: float) -> None:
    a, b, c = arrays_of(case)
    case.poison()
    c[:100] = a[:100] + b[:100]
    c[100 + beyond] = value
    verdict = case.judge()
    assert (verdict.check.passed, verdict.reason) == (False, "it wrote past the end of its output")
    assert verdict.check.error_over_bound is None
    case.poison()
    c[:100] = a[:100] + b[:100]
    assert case.judge().check.passed, "poison mends the guard"


def test_nothing_old_passes_for_a_result(case: Case) -> None:
    a, b, c = arrays_of(case)
    c[:100] = a[:100] + b[:100]
    case.poison()
    assert np.isnan(c[:100]).all()
    assert not case.judge().check.passed
    c[:99] = a[:99] + b[:99]
    assert (
        case.judge().reason == f"1 of 100 elements are wrong, the first at [99]: nan where {a[99] + b[99]:.9g} is right"
    )


def test_what_is_read_past_an_input_spoils_the_result(case: Case) -> None:
    a, b, _ = arrays_of(case)
    assert not np.isnan([a[:100], b[:100]]).any()
    assert np.isnan([a[100:], b[100:]]).all()


@pytest.mark.parametrize("problem", [VECADD, MATMUL], ids=["vecadd", "matmul"])
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
def test_inputs_follow_from_the_seed_alone(problem, dtype) -> None:
    sizes = (23,) * len(problem.dimensions)

    def inputs(seed: int) -> list[bytes]:
        case = Case(problem, sizes, dtype, seed)
        drawn = [array[:count].tobytes() for array, count in zip(arrays_of(case), case.elements, strict=True)][:-1]
        case.close()
        return drawn

    first, second = inputs(1)
    assert inputs(1) == [first, second]
    assert first != second, "swapped operands have to show"
    assert not {first, second} & set(inputs(2))


def test_inputs_are_no_constants() -> None:
    case = Case(MATMUL, (20, 30, 40), FLOAT32, seed=1)
    a, b, _ = arrays_of(case)
    assert len(np.unique(a[:800])) > 790
    assert len(np.unique(b[:1200])) > 1180
    case.close()


def test_a_copy_of_a_shared_array_lies_as_it_does() -> None:
    shared = SharedArray.create(5, 1000, np.dtype(np.float32))
    shared.whole[...] = np.arange(1005)
    copy = page_aligned_copy(shared.whole)
    assert copy.ctypes.data % mmap.PAGESIZE == shared.whole.ctypes.data % mmap.PAGESIZE == 0
    assert (copy == shared.whole).all()
    assert not np.shares_memory(copy, shared.whole)
    shared.close()
