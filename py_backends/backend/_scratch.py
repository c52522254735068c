"""Scratch memory of launches, which each calling thread keeps for its next one."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from py_backends.contract import Buffer

MOST_IDLE = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 64
"""Bytes of scratch memory that a thread always keeps, since allocating it anew costs more than keeping it."""


class Scratch(threading.local):
    """The calling thread's pieces of scratch memory.

    new: memory of so many bytes. Its `size` is at least that.
    release: gives memory back.
    """

    def __init__(self, new: Callable[[int], Buffer], release: Callable[[Buffer], None]) -> None:
        self._new, self._release = new, release
        self.pieces: dict[int, Buffer] = {}

    def hold(self, size: int, piece: int = 0) -> Buffer:
        """Memory of at least so many bytes. What is kept is used if it is enough, and wastes little."""
        kept = self.pieces.get(piece)
        if kept is None or not size <= kept.size <= max(4 * size, MOST_IDLE):
            if kept is not None:
                self._release(self.pieces.pop(piece))
            kept = self.pieces[piece] = self._new(size)
        return kept
