"""Inputs in a file of NumPy (`.npz`), by their names."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from py_backends.errors import WrongRequest

_ENDING = ".npy"


def stored_shapes(file: Path, names: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The shapes of the arrays of these names, without reading their elements.

    Raises WrongRequest, with one line, where one is missing, or the file cannot be read.
    """
    with _readable(file), zipfile.ZipFile(file) as archive:
        there = [name.removesuffix(_ENDING) for name in archive.namelist() if name.endswith(_ENDING)]
        missing = next((name for name in names if name not in there), None)
        if missing is not None:
            raise WrongRequest(f"{file} has no array {missing!r}: it has {', '.join(there)}")
        return tuple(_shape(archive, name) for name in names)


def stored_arrays(file: Path, names: Sequence[str]) -> list[NDArray[Any]]:
    """The arrays of these names. Raises WrongRequest as `stored_shapes` does."""
    with _readable(file), np.load(file, allow_pickle=False) as archive:
        return [archive[name] for name in names]


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    try:
        yield
    except WrongRequest:
        raise
    except (OSError, KeyError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise WrongRequest(f"{file} is no file of NumPy (.npz) that can be read: {error}") from error


def _shape(archive: zipfile.ZipFile, name: str) -> tuple[int, ...]:
    with archive.open(f"{name}{_ENDING}") as member:
        version = np.lib.format.read_magic(member)
        of_version = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in of_version:
            raise ValueError(f"{name} is written in another version of the format")
        shape: tuple[int, ...] = of_version[version](member)[0]
    return shape
