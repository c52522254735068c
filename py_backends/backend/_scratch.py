"""Scratch memory of kernels: how much of it a thread keeps from one launch to the next."""

from __future__ import annotations

import os

MOST_IDLE_SCRATCH = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 64
"""Bytes of scratch memory that a thread keeps however little it needs: to take it anew costs more than to hold it."""


def scratch_serves(kept: int, wanted: int) -> bool:
    """Whether scratch memory of `kept` bytes is to be used where so many are wanted: it suffices, and wastes little."""
    return wanted <= kept <= max(4 * wanted, MOST_IDLE_SCRATCH)
