"""Scratch memory of kernels: how much of it a thread keeps from one launch to the next."""

from __future__ import annotations

import os

MOST_IDLE_SCRATCH = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 64
"""Bytes of scratch memory that a thread always keeps, since allocating it anew costs more than keeping it."""


def scratch_serves(kept: int, wanted: int) -> bool:
    """Whether to use the kept scratch memory of `kept` bytes for a new need: it is enough, and wastes little."""
    return wanted <= kept <= max(4 * wanted, MOST_IDLE_SCRATCH)
