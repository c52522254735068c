"""The CPUs on which the calling thread may run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept() -> Iterator[None]:
    """Afterwards the calling thread may run where it might before.

    Where a variable such as OMP_PROC_BIND asks for bound threads, OpenMP's runtimes bind the thread that loads them,
    for good. All that it starts later would share one CPU.
    """
    before = os.sched_getaffinity(0)
    try:
        yield
    finally:
        if os.sched_getaffinity(0) != before:
            os.sched_setaffinity(0, before)
