"""Threads that share a CPU after their process was stopped are moved apart, where they may be."""

from __future__ import annotations

import os

import pytest
from commands import run_python

CPUS = sorted(os.sched_getaffinity(0))
pytestmark = pytest.mark.skipif(len(CPUS) < 2, reason="there is one CPU (to change that: two CPUs)")

IN_A_NEW_PROCESS = """
import hashlib, os, sys, threading
from pathlib import Path
from py_backends.workers.threads_apart import move_apart

cpus = sorted(os.sched_getaffinity(0))
os.sched_setaffinity(0, cpus[:1])
busy = threading.Thread(target=hashlib.pbkdf2_hmac, args=("sha256", b"", b"", 20_000_000), daemon=True)
busy.start()
thread = busy.native_id
may, is_on = eval(sys.argv[1]), eval(sys.argv[2])
ended_on = set()
for _ in range(20):  # on a busy machine Linux may take it back at once
    os.sched_setaffinity(thread, is_on)
    os.sched_setaffinity(thread, may)
    move_apart()
    stat = Path(f"/proc/self/task/{thread}/stat").read_bytes()
    ended_on.add(int(stat.rpartition(b")")[2].split()[36]))
    assert os.sched_getaffinity(thread) == set(may)
print(*sorted(map(cpus.index, ended_on)), flush=True)
os._exit(0)
"""
"""Moves a thread that computes, and prints on which CPUs it was then. Other threads of ours would count as well."""


def places(may: str, is_on: str) -> list[int]:
    """Where a thread is found that is on some CPUs and may run on others, if the thread that calls is on the first."""
    run = run_python("-c", IN_A_NEW_PROCESS, may, is_on)
    assert run.returncode == 0, run.stderr
    return list(map(int, run.stdout.split()))


def test_a_thread_leaves_the_cpu_of_the_one_that_calls() -> None:
    assert set(places("cpus", "cpus[:1]")) - {0}


def test_a_thread_that_may_run_nowhere_else_stays() -> None:
    assert places("cpus[:1]", "cpus[:1]") == [0]


def test_a_thread_with_a_cpu_of_its_own_stays_there() -> None:
    assert places("cpus[-1:]", "cpus[-1:]") == [len(CPUS) - 1]
