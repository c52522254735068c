"""Makes one file of anybody's a source of a kernel: as it is if it has this project's form, else behind a wrapper."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from py_backends import folders, registry
from py_backends.commands.judge import call, wrappers
from py_backends.commands.judge.call import Call
from py_backends.contract import KernelText, Problem
from py_backends.errors import WrongRequest
from py_backends.source_head import declarations, files_of
from py_backends.wording import listed

VARIANT = "judged"
_OTHER_SUFFIXES = {".cuh": ".cu", ".cc": ".cpp", ".cxx": ".cpp", ".hpp": ".cpp", ".h": ".cpp", ".c": ".cpp"}
"""What files are called elsewhere, by the suffix that sources have here."""


@dataclass(frozen=True)
class Given:
    """What a user gives: a file for a kernel, and how it is called where that is said beside it."""

    kernel: str
    file: Path
    backend: str
    said: str | None = None

    @property
    def suffix(self) -> str:
        """The suffix of sources of its kind."""
        return suffix_of(self.file)


def suffix_of(file: Path) -> str:
    """The suffix that sources like this file have here."""
    return _OTHER_SUFFIXES.get(file.suffix, file.suffix)


def checked(kernel: str, file: Path, backend: str | None, said: str | None) -> Given:
    """What is given, once its model is clear. Raises WrongRequest, with one line, where it is not."""
    name = registry.kernel_named(kernel)
    registry.known(name, registry.kernel_names(), "kernel")
    if not file.is_file():
        raise WrongRequest(f"{file} is no file")
    if backend is not None:
        registry.known_backend(backend)
    suffixes = _suffixes()
    having = [each for each, of_model in suffixes.items() if suffix_of(file) in of_model]
    if not having:
        every = sorted(set().union(*suffixes.values()))
        raise WrongRequest(f"{file} is in no known model: sources end in {listed(every)}")
    if backend is None and len(having) > 1:
        raise WrongRequest(f"{file} may be of several models: name one by --backend, of {listed(having)}")
    if backend is not None and backend not in having:
        raise WrongRequest(f"{backend} takes {listed(sorted(suffixes[backend]) or ['no sources'])}, not {file}")
    return Given(name, file, backend or having[0], said)


def _suffixes() -> dict[str, set[str]]:
    """By backend, the suffixes of its sources."""
    return {
        backend: {
            path.suffix
            for kernel in registry.kernel_names()
            for path, _ in registry.kernel_files(kernel, backend).values()
        }
        for backend in registry.backend_names()
    }


@contextmanager
def added(given: Given) -> Iterator[KernelText]:
    """Within, the file is the source of its kernel and model that has the variant `judged`.

    Raises WrongRequest, with one line, where it is not clear how it is called.
    """
    with tempfile.TemporaryDirectory(prefix="py-backends-judge-") as room:
        folder = Path(room, given.kernel, VARIANT)
        folder.mkdir(parents=True)
        for header in registry.kernels_folder().glob("*.hpp"):  # which sources include from two folders above
            Path(room, header.name).symlink_to(header.resolve())  # a copy would not be the same to `#pragma once`
        _write(given, folder)
        with folders.known(folders.sources_at(folder, given.kernel)):
            yield registry.kernel_texts(given.kernel, given.backend)[VARIANT]


def _write(given: Given, folder: Path) -> None:
    """Write the source into its folder, and beside it what it includes."""
    text, problem = given.file.read_text(encoding="utf-8", errors="replace"), registry.problem(given.kernel)
    source = folder / f"{given.backend}{given.suffix}"
    for beside in files_of(given.file.resolve())[1:]:
        place = folder / os.path.relpath(beside, given.file.resolve().parent)
        if folder.parent.parent in Path(os.path.normpath(place)).parents:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(beside, place)
    if is_in_our_form(given, text, problem):
        shutil.copy(given.file, source)
        return
    called = _called(given, text, problem)
    takes = wrappers.formats(called, text, problem)
    mark = "#" if given.suffix == ".py" else "//"
    head = wrappers.head(called, given.file.name, takes, problem, mark)
    source.write_text(head + _wrapped(given, called, text, problem, folder), encoding="utf-8")


def _wrapped(given: Given, called: Call, text: str, problem: Problem, folder: Path) -> str:
    """The wrapper's code, by the language. What it includes or imports is copied beside it."""
    if given.suffix == ".cu":
        return wrappers.in_cuda(called, given.file.name, text, problem)
    if given.suffix == ".cl":
        return wrappers.in_opencl(called, given.file.name, text, problem)
    if given.suffix == ".py":
        shutil.copy(given.file, folder / "_theirs.py")
        return wrappers.in_python(called, "_theirs", problem, given.backend)
    shutil.copy(given.file, folder / f"their_{given.file.name}")
    return wrappers.in_cpp(called, f"their_{given.file.name}", problem)


def is_in_our_form(given: Given, text: str, problem: Problem) -> bool:
    """Whether a file is a source as this project writes them, which needs no wrapper."""
    if given.said or call.said_in(text):
        return False
    if _declares_launch(text):
        return True
    count = len(problem.inputs) + problem.outputs + len(problem.parameters)
    return not _is_launched(given) and any(True for _ in call.parameters(text, given.kernel, count))


def _called(given: Given, text: str, problem: Problem) -> Call:
    """How the file's function is called. Raises WrongRequest, with what to paste, where nothing says it."""
    if given.suffix == ".cpp" and _is_launched(given):
        raise WrongRequest(f"{given.backend} takes sources in this project's form alone: docs/write-a-kernel.md")
    said = given.said or call.said_in(text)
    mark = "#" if given.suffix == ".py" else "//"
    paste = call.proposed(text, problem, given.backend, mark)
    if said is None:
        raise WrongRequest(f"{given.file} does not say how {given.kernel} is called: put a line such as  {paste}")
    found = call.parse(said, problem)
    if not any(True for _ in call.declared(text, found.name)) and found.name not in text:
        raise WrongRequest(f"{given.file} has no function {found.name}")
    if _is_launched(given) and found.work_items is None:
        raise WrongRequest(f"{given.file} does not say its launch: add it as in  {paste}")
    return found


def _is_launched(given: Given) -> bool:
    """Whether sources of the model declare their launch."""
    texts: Sequence[KernelText] = [
        text for kernel in registry.kernel_names() for text in registry.kernel_texts(kernel, given.backend).values()
    ]
    return any(_declares_launch(text.text) for text in texts if text.variant == "lecture")


def _declares_launch(text: str) -> bool:
    try:
        return any(name.startswith("Work items") for name, _ in declarations(text))
    except ValueError:
        return False
