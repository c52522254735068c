"""GNU's OpenMP: MKL, Numba and the extensions share its threads in one process."""

from __future__ import annotations

import ctypes
import os
from functools import cache

_PAUSE_SOFT = 1
"""omp_pause_soft of OpenMP 5.0: threads end, and settings stay."""


@cache
def end_threads_before_forks() -> bool:
    """Let a thread's pool end before the thread forks, as a child would wait for it. False if there is no such OpenMP.

    The next parallel region makes a new pool. The extensions do the same once one of them is loaded.
    """
    try:
        pause = ctypes.CDLL("libgomp.so.1").omp_pause_resource_all
    except (OSError, AttributeError):  # there is none, or one from before OpenMP 5.0
        return False
    os.register_at_fork(before=lambda: pause(_PAUSE_SOFT))
    return True
