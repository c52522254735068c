"""The memory of a rank: reused for arrays of the same size, and bounded whatever the sizes are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from py_backends.contract import Array
from py_backends.ranks.memory import _LARGE_PAGE, Memory

BYTE, FLOAT = np.dtype(np.uint8), np.dtype(np.float32)


def address(array: Array) -> int:
    return array.__array_interface__["data"][0]


def compute(memory: Memory, sizes: Sequence[int]) -> list[int]:
    """What a call does: takes all arrays, then gives them back. The addresses of their memory."""
    arrays = [memory.take((size,), BYTE) for size in sizes]
    for array in arrays:
        memory.give_back(array)
    return [address(array) for array in arrays]


def test_arrays_of_the_same_size_are_in_the_same_memory() -> None:
    memory = Memory()
    assert set(compute(memory, [300, 500, 700])) == set(compute(memory, [700, 300, 500]))
    first = memory.take((3, 25), FLOAT)
    borrowed = memory.borrow((125,), FLOAT)
    first[:], borrowed[:] = 1, 2
    assert (first == 1).all(), "they share no memory"
    assert (first.shape, first.dtype) == ((3, 25), FLOAT)
    assert memory.nbytes == 1500, "nothing new"


@pytest.mark.parametrize("size", [_LARGE_PAGE - 1, _LARGE_PAGE, 3 * _LARGE_PAGE + 5])
def test_what_fills_a_large_page_begins_one(size: int) -> None:
    array = Memory().take((size,), BYTE)
    array[:] = 7
    assert array.shape == (size,)
    assert (array == 7).all()
    assert address(array) % _LARGE_PAGE == 0 or size < _LARGE_PAGE


def test_what_was_borrowed_comes_back_at_once() -> None:
    memory = Memory()
    kept = memory.take((3,), FLOAT)
    borrowed = {address(memory.borrow(shape, FLOAT)) for shape in ((5, 5), (7,))}
    memory.give_back_borrowed()
    assert {address(memory.take((size,), FLOAT)) for size in (7, 25)} == borrowed
    assert address(kept) not in borrowed


def test_sizes_that_keep_changing_leave_no_more_than_those_that_do_not() -> None:
    memory = Memory()
    for size in range(1000, 2000):
        compute(memory, [size, size, size])
        assert memory.nbytes <= 3 * size


def test_what_a_large_computation_leaves_goes_with_the_first_smaller_one() -> None:
    memory = Memory()
    compute(memory, [1_000_000, 2_000_000])
    assert memory.nbytes == 3_000_000
    small = compute(memory, [1000, 2000])
    assert memory.nbytes == 3000
    assert set(compute(memory, [1000, 2000])) == set(small)


def test_blocks_without_elements_end_no_period() -> None:
    """Where there are more ranks than rows, some ranks hold nothing of an array."""
    memory = Memory()
    once = compute(memory, [1000, 0])
    memory.give_back(memory.take((0, 7), FLOAT))
    assert compute(memory, [0, 1000])[1] == once[0]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 20)), max_size=60))
def test_it_holds_what_was_in_use_at_one_time_and_no_more(steps: list[tuple[bool, int]]) -> None:
    """Each step takes an array of so many bytes, or gives one back."""
    memory, used, most = Memory(), list[Array](), 0
    for takes, size in steps:
        if takes:
            used.append(memory.take((size,), BYTE))
        elif used:
            memory.give_back(used.pop(size % len(used)))
        in_use = sum(array.nbytes for array in used)
        most = max(most, in_use)
        assert in_use <= memory.nbytes <= most
        assert len({address(array) for array in used if array.nbytes}) == len([1 for array in used if array.nbytes])
