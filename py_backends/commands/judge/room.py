"""The folder in which a judged source lies: two below the headers that are here, beside what it includes or imports."""

from __future__ import annotations

import ast
import filecmp
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from py_backends import registry
from py_backends.errors import WrongRequest
from py_backends.source_head import files_of
from py_backends.system import temporary


@contextmanager
def room(kernel: str, variant: str) -> Iterator[Path]:
    """Within, a folder for a source. Raises WrongRequest where there is no place for one."""
    path = temporary.folder()
    if path is None:
        raise WrongRequest(f"{tempfile.gettempdir()} has no place for a temporary folder, in which a source is judged")
    try:
        folder = path / kernel / variant
        folder.mkdir(parents=True)
        for header in registry.kernels_folder().glob("*.hpp"):  # which sources include from two folders above
            Path(path, header.name).symlink_to(header.resolve())  # a copy would not be the same to `#pragma once`
        yield folder
    finally:
        temporary.remove(path)


def bring_included(file: Path, folder: Path) -> None:
    """Copy what a file includes, to where it looks for that from a folder of a room."""
    for beside in files_of(file)[1:]:
        place = Path(os.path.normpath(folder / os.path.relpath(beside, file.parent)))
        if folder.parent.parent not in place.parents:
            raise WrongRequest(f"{file} includes {beside}, from more than two folders above: put it nearer")
        if place.is_symlink():
            if filecmp.cmp(beside, place, shallow=False):
                continue
            place.unlink()  # a copy would write through it, to a header of this package
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(beside, place)


def bring_module(file: Path, place: Path) -> None:
    """Copy a Python file, and the modules beside it that it imports, which it imports from beside it from then on."""
    text = file.read_text(encoding="utf-8", errors="replace")
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError:  # which preparing it tells
        nodes = []
    lines = text.encode().splitlines(keepends=True)
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in sorted(imports, key=lambda each: (each.lineno, each.col_offset), reverse=True):
        made, found = _from_beside(node, file.parent)
        if found and node.lineno == node.end_lineno:
            line = lines[node.lineno - 1]
            lines[node.lineno - 1] = line[: node.col_offset] + made.encode() + line[node.end_col_offset :]
        elif found and b"from ." not in lines[node.lineno - 1]:  # over several lines
            lines[node.lineno - 1] = lines[node.lineno - 1].replace(b"from ", b"from .", 1)
        for name in found:
            _bring(file.parent, name, place.parent)
    place.write_bytes(b"".join(lines))


def _bring(source: Path, name: str, folder: Path) -> None:
    """Copy a module or a package, once."""
    if (source / f"{name}.py").is_file():
        if not (folder / f"{name}.py").exists():
            (folder / f"{name}.py").touch()  # modules may import each other
            bring_module(source / f"{name}.py", folder / f"{name}.py")
    else:
        shutil.copytree(source / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)


def _from_beside(node: ast.Import | ast.ImportFrom, folder: Path) -> tuple[str, list[str]]:
    """An import with relative ones of what lies beside a file, and the names of that; as it is without any."""
    if isinstance(node, ast.ImportFrom):
        name = (node.module or "").partition(".")[0]
        names = [name] if name else [each.name for each in node.names]
        found = [each for each in names if node.level < 2 and _is_beside(each, folder, relative=bool(node.level))]
        if found and not node.level:
            node.level = 1
        return ast.unparse(node), found
    made, found = [], []
    for each in node.names:
        parent, _, last = each.name.rpartition(".")
        if not _is_beside(each.name.partition(".")[0], folder):
            made.append(f"import {each.name}" + (f" as {each.asname}" if each.asname else ""))
            continue
        if parent and not each.asname:
            raise WrongRequest(f"import {each.name}: write it as  from {parent} import {last}")
        made.append(f"from .{parent} import {last}" + (f" as {each.asname}" if each.asname else ""))
        found.append(each.name.partition(".")[0])
    return "; ".join(made), found


def _is_beside(name: str, folder: Path, *, relative: bool = False) -> bool:
    """Whether an imported name is that of a file or folder beside. What is installed goes before."""
    if not name or not ((folder / f"{name}.py").is_file() or any((folder / name).glob("*.py"))):
        return False
    if relative:
        return True
    spec = find_spec(name)
    places = [spec.origin or "", *(spec.submodule_search_locations or ())] if spec else []
    return not spec or any(Path(each).resolve().is_relative_to(folder.resolve()) for each in places if each)
