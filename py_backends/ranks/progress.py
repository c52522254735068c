"""Which of the ranks on this machine compute. Those that wait for ranks use this.

A rank that never returns from its kernel, or is killed, cannot report it itself.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from py_backends.contract import Array

_FILE, _LAST_WORDS = "progress", "last words"
_ENTRY = np.dtype(np.int32)


class Progress:
    """What a rank says about itself, in a file that all processes of this machine map."""

    def __init__(self, folder: Path | None = None, rank: int = 0, ranks: int = 1) -> None:
        """Without the folder on this machine, nobody reads it."""
        self._folder = folder
        self._computes = _entries(folder, ranks)[rank : rank + 1]

    @contextlib.contextmanager
    def counted(self, *, computing: bool) -> Iterator[None]:
        """During this, in a kernel or elsewhere, the rank counts as computing, or as waiting for others."""
        before = self.told(computing=computing)
        try:
            yield
        finally:
            self.told(computing=before)

    def told(self, *, computing: bool) -> bool:
        """What the rank counted as, which it does no more: from now on it computes, or waits for others."""
        before = bool(self._computes[0])
        self._computes[0] = computing
        return before

    def say(self, line: str) -> None:
        """Leave a line behind, since an ending launcher may not pass on what a rank has just written."""
        if self._folder is not None and self._folder.is_dir():
            with open(self._folder / _LAST_WORDS, "a", encoding="utf-8") as words:
                words.write(f"{line}\n")


def last_words(folder: Path) -> str:
    """The lines that ranks have left behind, if any."""
    try:
        return (folder / _LAST_WORDS).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def who_computes(folder: Path) -> list[int]:
    """The ranks that compute now. None if all do, or if that is unknown."""
    computes = _read(folder)
    return [] if computes.all() else np.flatnonzero(computes).tolist()


def _entries(folder: Path | None, ranks: int) -> Any:
    if folder is None or not folder.is_dir():
        return np.zeros(ranks, _ENTRY)
    file = os.open(folder / _FILE, os.O_CREAT | os.O_RDWR, 0o600)
    os.ftruncate(file, ranks * _ENTRY.itemsize)
    with open(file, "r+b") as opened:
        return np.memmap(opened, _ENTRY, shape=(ranks,))


def _read(folder: Path) -> Array:
    try:
        return np.frombuffer((folder / _FILE).read_bytes(), _ENTRY)
    except OSError:
        return np.empty(0, _ENTRY)
