"""Gives equal large files of an environment one place on the disk: python cmake/link_equal.py FOLDER

Wheels cannot hold links. So some bring a library two or three times, under the names by which others look for it. pip
replaces and removes files by their names, and never writes into one. So a hard link is as good to it as a copy.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import sys
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path

SMALLEST = 2**20
"""Bytes of files that are worth it."""


def large_files(folder: Path) -> Iterator[Path]:
    """Files that are no links."""
    for place, _, names in os.walk(folder):
        for path in (Path(place, name) for name in names):
            if not path.is_symlink() and path.stat().st_size >= SMALLEST:
                yield path


def alike(paths: Sequence[Path]) -> list[list[Path]]:
    """Groups of files of the same contents and rights. Only those of the same size are read."""
    of_sizes: dict[Hashable, list[Path]] = defaultdict(list)
    for path in paths:
        found = path.stat()
        of_sizes[found.st_size, found.st_mode, found.st_dev].append(path)
    groups: dict[Hashable, list[Path]] = defaultdict(list)
    for key, of_size in of_sizes.items():
        for path in of_size if len(of_size) > 1 else ():
            with path.open("rb") as file:
                groups[key, hashlib.file_digest(file, "sha256").digest()].append(path)
    return list(groups.values())


def link(first: Path, other: Path) -> None:
    """Put a link to the first file in place of the other one, at once."""
    if not first.samefile(other):
        beside = other.with_name(f"{other.name}.link")
        os.link(first, beside)
        beside.replace(other)


def main(folder: Path) -> None:
    """Link what is equal, as far as the file system has links."""
    try:
        for group in alike(sorted(large_files(folder))):
            for first, other in itertools.product(group[:1], group[1:]):
                link(first, other)
    except OSError as error:
        sys.stderr.write(f"Equal files in {folder} stay copies: {error}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
