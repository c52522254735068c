"""Which ranks run on this machine, and which of them compute. Those that wait for ranks, or watch them, use this.

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
_ENTRY = np.dtype([("process", np.int32), ("computes", np.int32)])


class Progress:
    """What a rank says about itself, in a file that all processes of this machine map."""

    def __init__(self, folder: Path | None = None, rank: int = 0, ranks: int = 1) -> None:
        """Without the folder on this machine, nobody reads it."""
        self._folder = folder
        self._own = _entries(folder, ranks)[rank : rank + 1]
        self._own["process"] = os.getpid()

    @contextlib.contextmanager
    def computing(self) -> Iterator[None]:
        """During this, the rank counts as computing."""
        yield from self._while(1)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """During this, in a kernel or elsewhere, the rank counts as waiting for others."""
        yield from self._while(0)

    def say(self, line: str) -> None:
        """Leave a line behind, since an ending launcher may not pass on what a rank has just written."""
        if self._folder is not None and self._folder.is_dir():
            with open(self._folder / _LAST_WORDS, "a", encoding="utf-8") as words:
                words.write(f"{line}\n")

    def _while(self, computes: int) -> Iterator[None]:
        before = self._own["computes"][0]
        self._own["computes"] = computes
        try:
            yield
        finally:
            self._own["computes"] = before


def processes(folder: Path) -> dict[int, int]:
    """What the ranks on this machine say, by rank."""
    return {rank: int(process) for rank, process in enumerate(_read(folder)["process"]) if process}


def last_words(folder: Path) -> str:
    """The lines that ranks have left behind, if any."""
    try:
        return (folder / _LAST_WORDS).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def who_computes(folder: Path) -> list[int]:
    """The ranks that compute now. None if all do, or if that is unknown."""
    computes = _read(folder)["computes"]
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
