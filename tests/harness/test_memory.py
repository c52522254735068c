"""The memory that a case shares with its workers: guarded, the same for equal seeds, gone with its holders."""

from __future__ import annotations

import errno
import mmap
import os
import select
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NoReturn

import numpy as np
import pytest

from py_backends import registry
from py_backends.contract import Array
from py_backends.harness import pool
from py_backends.harness.case import Case
from py_backends.system import shared_memory
from py_backends.system.bits import page_aligned_copy
from py_backends.system.descriptors import process_descriptor
from py_backends.system.shared_memory import SharedMemory
from py_backends.workers.arena import TO_MOVE_IN, Arena, zone_elements

MATMUL, VECADD = registry.problem("matmul"), registry.problem("vecadd")
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


def raises_no_memory(*_: Any, **__: Any) -> NoReturn:
    raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))


class TestSharedMemory:
    def test_that_the_system_does_not_give_is_too_little_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """With `ulimit -v` there was a traceback and no row, and each failure kept a descriptor."""
        before = len(list(Path("/proc/self/fd").iterdir()))
        monkeypatch.setattr(shared_memory, "_map", raises_no_memory)
        with pytest.raises(MemoryError, match=r"gives no 2,000,000,000 bytes to share: Cannot allocate memory"):
            SharedMemory.create(2 * 10**9)
        assert len(list(Path("/proc/self/fd").iterdir())) == before

    def test_what_one_side_writes_the_other_reads(self) -> None:
        ours = SharedMemory.create(10)
        theirs = SharedMemory.attach(os.dup(ours.descriptor), 10, writable=True)
        ours.bytes[:] = np.arange(10)
        theirs.bytes[8:] = 7
        np.testing.assert_array_equal(theirs.bytes, [*range(8), 7, 7])
        np.testing.assert_array_equal(ours.bytes, theirs.bytes)
        ours.close()
        theirs.close()

    def test_inputs_cannot_be_written_on_the_other_side(self) -> None:
        ours = SharedMemory.create(10)
        theirs = SharedMemory.attach(os.dup(ours.descriptor), 10, writable=False)
        with pytest.raises(ValueError, match="read-only"):
            theirs.bytes[0] = 1
        ours.close()
        theirs.close()

    @pytest.mark.parametrize("python", ["new", "built on an old system"])
    def test_it_has_no_name_and_its_descriptor_is_not_inherited(
        self, python: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if python != "new":
            monkeypatch.delattr(os, "memfd_create")
        shared = SharedMemory.create(10)
        assert str(Path(f"/proc/self/fd/{shared.descriptor}").readlink()).startswith("/memfd:")
        assert not os.get_inheritable(shared.descriptor)
        shared.close()
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(shared.descriptor)


def test_memory_is_found_while_other_threads_make_and_close_some() -> None:
    """Threads that call at once each look for the memory in which their arrays lie."""
    held = [SharedMemory.create(64) for _ in range(200)]
    elsewhere, done = np.zeros(4), threading.Event()

    def make_and_close() -> None:
        while not done.is_set():
            SharedMemory.create(64).close()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    other = threading.Thread(target=make_and_close)
    other.start()
    try:
        for _ in range(2000):
            assert shared_memory.behind(elsewhere) is None
    finally:
        sys.setswitchinterval(before)
        done.set()
        other.join()
    assert shared_memory.behind(held[-1].bytes) == (held[-1], 0)


def test_a_python_that_was_built_on_an_old_system_sees_processes_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        descriptor = process_descriptor(child.pid)
        assert select.select([descriptor], [], [], 60)[0] == [descriptor]
    os.close(descriptor)
    with pytest.raises(ProcessLookupError):
        process_descriptor(child.pid)


class TestArena:
    @pytest.fixture
    def arena(self) -> Iterator[Arena]:
        made = Arena([2**16 + TO_MOVE_IN] * 3)
        made.place((5,), FLOAT32, [(5,)] * 3, (1, 0, 3))
        for array in made.inputs:
            array[...] = np.arange(5)
        yield made
        made.close()

    def whole(self, arena: Arena, array: int) -> Array:
        return arena._memory[array].bytes.view(np.float32)

    def test_arrays_lie_between_zones(self, arena: Arena) -> None:
        for array, start in enumerate((1, 0, 3)):
            whole, first = self.whole(arena, array), arena.spans[array].first
            assert (whole.ctypes.data + first) % mmap.PAGESIZE == 4 * start
            at = first // 4
            around = np.concatenate([whole[:at], whole[at + 5 : at + 1000]])
            assert (around == -1e30).all() if array == 2 else np.isnan(around).all()
        assert np.isnan(arena.output).all()

    def test_moved_arrays_keep_their_values_between_zones_and_begin_at_cache_lines(self, arena: Arena) -> None:
        places = set()
        for seed in range(20):
            arena.move(Random(seed))
            places.add(tuple(each.first for each in arena.spans))
            for array, span in enumerate(arena.spans[:2]):
                whole, at = self.whole(arena, array), span.first // 4
                assert (whole.ctypes.data + span.first) % 64 == 0
                assert whole[at : at + 5].tolist() == arena.inputs[array].tolist() == [0, 1, 2, 3, 4]
                assert np.isnan([*whole[at - 4 : at], *whole[at + 5 : at + 1000]]).all()
            assert np.isnan(arena.output).all()
            assert arena.trespass() is None
            self.whole(arena, 2)[arena.spans[2].first // 4 - 1] = 0
            assert "before" in str(arena.trespass())
        assert len(places) == 20
        firsts = {first for each in places for first in each}
        assert max(firsts) < 2 * mmap.PAGESIZE + TO_MOVE_IN
        assert len({first // mmap.PAGESIZE for first in firsts}) > 20, "in many pages"

    @pytest.mark.parametrize(("at", "words"), [(-1, "before the beginning"), (5, "past the end"), (-900, "before")])
    def test_what_is_written_around_the_output_is_seen(self, arena: Arena, at: int, words: str) -> None:
        assert arena.trespass() is None
        self.whole(arena, 2)[arena.spans[2].first // 4 + at] = np.nan
        assert words in str(arena.trespass())
        arena.poison()
        assert arena.trespass() is None

    def test_what_does_not_fit_is_refused(self, arena: Arena) -> None:
        with pytest.raises(MemoryError, match=r"exceed \[327680, 327680, 327680\] bytes"):
            arena.place((2**17,), FLOAT32, [(2**17,)] * 3)

    def test_a_bare_array_has_no_zone_that_a_kernel_sees_and_is_watched_all_the_same(self, arena: Arena) -> None:
        arena.place((5,), FLOAT32, [(5,)] * 3, bare=True)
        assert [(each.size, each.zone) for each in arena.spans] == [(20, 0)] * 3
        self.whole(arena, 2)[arena.spans[2].first // 4 + 5] = 0
        assert "past the end" in str(arena.trespass())

    def test_the_next_case_finds_nothing_of_the_one_before(self, arena: Arena) -> None:
        arena.output[...] = 1
        arena.place((2, 3), FLOAT64, [(2, 3)] * 3)
        assert (arena.output.shape, arena.output.dtype) == ((2, 3), FLOAT64)
        assert np.isnan(arena.output).all()

    @pytest.mark.parametrize("sizes", [(), (0,), (1,), (509,), (3, 700, 5), (2**40,)])
    def test_zones_take_one_row_too_many_but_no_endless_memory(self, sizes: tuple[int, ...]) -> None:
        zone = zone_elements(sizes)
        assert zone > min(max(sizes, default=0), 2**16)
        assert zone <= 2**17


@pytest.fixture
def case() -> Iterator[Case]:
    made = Case(VECADD, (100,), FLOAT32, seed=5)
    yield made
    made.close()


def arrays_of(case: Case) -> list[Array]:
    """All arrays of a case with the zones behind them, as a worker attaches them."""
    attached = [
        SharedMemory.attach(os.dup(descriptor), count, writable=True)
        for descriptor, count in zip(case.descriptors, case.capacities, strict=True)
    ]
    pairs = zip(attached, case.spans, strict=True)
    return [memory.bytes[at.first : at.end].view(case.dtype) for memory, at in pairs]


def test_a_result_in_its_place_passes(case: Case) -> None:
    a, b, c = arrays_of(case)
    case.poison()
    c[:100] = a[:100] + b[:100]
    assert case.check_output().check.passed


@pytest.mark.parametrize("beyond", [0, 1, 99])
@pytest.mark.parametrize("value", [0.0, 1.0, np.nan])
def test_a_write_past_the_end_is_seen(case: Case, beyond: int, value: float) -> None:
    a, b, c = arrays_of(case)
    case.poison()
    c[:100] = a[:100] + b[:100]
    c[100 + beyond] = value
    verdict = case.check_output()
    assert (verdict.check.passed, verdict.reason) == (False, "it wrote past the end of its output")
    assert verdict.check.error_over_bound is None
    case.poison()
    c[:100] = a[:100] + b[:100]
    assert case.check_output().check.passed, "poison mends the guard"


def test_nothing_old_passes_for_a_result(case: Case) -> None:
    a, b, c = arrays_of(case)
    c[:100] = a[:100] + b[:100]
    case.poison()
    assert np.isnan(c[:100]).all()
    assert not case.check_output().check.passed
    c[:99] = a[:99] + b[:99]
    assert (
        case.check_output().reason
        == f"1 of 100 elements are wrong, the first at [99]: nan where {a[99] + b[99]:.9g} is right"
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
        pairs = zip(arrays_of(case), case.spans, strict=True)
        drawn = [array.view(np.uint8)[: at.size].tobytes() for array, at in pairs][:-1]
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
    shared = SharedMemory.create(1005)
    shared.bytes[...] = np.arange(1005) % 256
    copy = page_aligned_copy(shared.bytes)
    assert copy.ctypes.data % mmap.PAGESIZE == shared.bytes.ctypes.data % mmap.PAGESIZE == 0
    assert (copy == shared.bytes).all()
    assert not np.shares_memory(copy, shared.bytes)
    shared.close()


class TestNeeded:
    """What is asked for before a case is made, against what NumPy then holds at one time."""

    @pytest.mark.parametrize("dtype", MATMUL.dtypes)
    @pytest.mark.parametrize("sizes", [(300, 300, 300), (900, 900, 3), (9, 9, 20_000)])
    def test_it_suffices_to_judge(self, sizes: tuple[int, ...], dtype: str) -> None:
        """The reference is computed in float64, whatever the format, and that of a narrow one is most of it."""
        tracemalloc.start()
        try:
            case = Case(MATMUL, sizes, np.dtype(dtype), 1)
            case.check_output()
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        held = most + MATMUL.bytes(sizes, np.dtype(dtype))
        case.close()
        asked = pool.needed_memory(MATMUL, sizes, np.dtype(dtype))
        assert held <= asked <= 3 * held

    def test_bits_are_compared_without_float64(self) -> None:
        assert pool.needed_memory(VECADD, (1000,), FLOAT32) == 6 * 3 * 4000

    def test_who_asks_for_more_than_is_free_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sizes, narrow = (1000, 1000, 1000), np.dtype(np.float16)
        monkeypatch.setattr(pool.machine, "free_memory", lambda: 60 * 10**6)
        pool.check_memory(VECADD, (10**6,), narrow)
        with pytest.raises(MemoryError, match=r"^matmul 1000 x 1000 x 1000 needs about 0\.2 GB, and 0\.1 GB are free$"):
            pool.check_memory(MATMUL, sizes, narrow)
