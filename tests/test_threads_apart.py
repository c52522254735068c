"""Threads that share a CPU after their process was stopped are moved apart, where they may be."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from py_backends.harness.threads_apart import move_apart

CPUS = sorted(os.sched_getaffinity(0))
pytestmark = pytest.mark.skipif(len(CPUS) < 2, reason="there is one CPU (to change that: two CPUs)")


@pytest.fixture
def busy() -> Iterator[int]:
    """The number of a thread that computes on the CPU of this one, and may run on all."""
    before = os.sched_getaffinity(0)
    computing = threading.Thread(target=hashlib.pbkdf2_hmac, args=("sha256", b"", b"", 400_000))
    os.sched_setaffinity(0, CPUS[:1])
    computing.start()
    number = computing.native_id
    assert number
    os.sched_setaffinity(number, before)
    yield number
    os.sched_setaffinity(0, before)
    computing.join()


def cpu_of(thread: int) -> int:
    stat = Path(f"/proc/self/task/{thread}/stat").read_bytes()
    return int(stat.rpartition(b")")[2].split()[36])


def test_a_thread_leaves_the_cpu_of_the_one_that_calls(busy: int) -> None:
    for _ in range(5):  # on a busy machine Linux may take it back at once
        os.sched_setaffinity(busy, CPUS[:1])
        os.sched_setaffinity(busy, CPUS)
        assert cpu_of(busy) == CPUS[0]
        move_apart()
        assert os.sched_getaffinity(busy) == set(CPUS)
        if cpu_of(busy) != CPUS[0]:
            return
    pytest.fail("it stays on the CPU of the one that calls")


def test_a_thread_that_may_run_nowhere_else_stays(busy: int) -> None:
    os.sched_setaffinity(busy, CPUS[:1])
    move_apart()
    assert cpu_of(busy) == CPUS[0]
    assert os.sched_getaffinity(busy) == set(CPUS[:1])


def test_a_thread_with_a_cpu_of_its_own_stays_there(busy: int) -> None:
    os.sched_setaffinity(busy, CPUS[-1:])
    move_apart()
    assert cpu_of(busy) == CPUS[-1]
    assert os.sched_getaffinity(busy) == set(CPUS[-1:])
