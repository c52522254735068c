"""The folder of a race: a kernel, a backend for each function, and beside them what they compute with."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from py_backends import folders
from py_backends.contract import Array, Reference
from py_backends.errors import WrongRequest
from py_backends.racing import travel
from py_backends.racing.form import Form
from py_backends.racing.kept import Change
from py_backends.stored_inputs import stored_arrays
from py_backends.system import machine, temporary

VARIANT = "given"
_OF_ANSWER = 16
"""Copies of the inputs in float64 that the right answer and its bound take at most: `np.cumsum` takes these."""
_PROBLEM = """from pathlib import Path

from py_backends.racing.problem import problem

PROBLEM = problem(Path(__file__).parents[1])
"""
_BACKEND = """from pathlib import Path

from py_backends.racing.device import backend

Backend = backend(Path(__file__).parents[2], {name!r})
"""


@dataclass(frozen=True)
class Facts:
    """What is known of a race.

    kernel: what its rows are called.
    names: of the functions, the baseline first.
    threads: of each function that can be told.
    judge: the name of the one that is right.
    size: for which the inputs were made, if that is known.
    """

    kernel: str
    names: tuple[str, ...]
    threads: int
    judge: str = ""
    size: int | None = None


@dataclass(frozen=True)
class Race:
    """A race's folder, for whoever reads it or adds to it."""

    path: Path

    @cached_property
    def facts(self) -> Facts:
        return self._read("facts")  # type: ignore[no-any-return]  # as `write` wrote it

    @cached_property
    def inputs(self) -> tuple[Form, ...]:
        """The forms of the arrays among the inputs."""
        return self._read("inputs")  # type: ignore[no-any-return]

    @cached_property
    def outputs(self) -> tuple[Form, ...]:
        """The forms of what a right function gives."""
        return self._read("outputs")  # type: ignore[no-any-return]

    @property
    def width(self) -> float | None:
        """That of the widest bound, if bounds come by themselves."""
        return self._read("width")  # type: ignore[no-any-return]

    def function(self, name: str) -> travel.Function:
        """A function, imported in this process."""
        return travel.unpacked(self._of(name).read_bytes())  # type: ignore[no-any-return]

    def arguments(self, arrays: Sequence[Array]) -> list[Any]:
        """What functions get: these arrays, and between them what is no array."""
        if self._arrays_alone:
            return list(arrays)
        left = iter(arrays)
        return [next(left) if each is None else each.value for each in self._values]

    def packed_values(self) -> bytes | None:
        """What is no array, as it is now; None where there is none."""
        return None if self._arrays_alone else travel.packed_values(self._values)

    @cached_property
    def _arrays_alone(self) -> bool:
        """Whether nothing else is passed on, and no array stands in for inputs that are none."""
        return self._values == [None] * len(self.inputs)

    @cached_property
    def _values(self) -> list[Value | None]:
        """Of each argument what it is; None for an array."""
        return travel.unpacked((self.path / "values").read_bytes())  # type: ignore[no-any-return]

    def kept_inputs(self) -> list[Array]:
        """The arrays among the inputs as they are kept."""
        names = [str(at) for at in range(len(self.inputs))]
        pairs = zip(self.inputs, stored_arrays(self.path / "inputs.npz", names), strict=True)
        return [array.view(form.kept_as).reshape(form.kept_shape) for form, array in pairs]

    def references(self) -> tuple[Reference, ...]:
        """The right answer."""
        with np.load(self.path / "answer.npz", allow_pickle=False) as kept:
            return tuple(
                Reference(*(kept.get(f"{part}{at}") for part in ("value", "bound", "overflow")))
                for at in range(len(self.outputs))
            )

    def changes(self) -> list[Change]:
        """Changes of the inputs for which it is known what is right."""
        return self._read("changes")  # type: ignore[no-any-return]  # as `write_changes` wrote it

    def write(self, facts: Facts, functions: Mapping[str, bytes]) -> None:
        """Write what is known before anything is computed: functions by their names, as `travel` packs them."""
        self._write("facts", facts)
        for name, function in functions.items():
            self._of(name).parent.mkdir(exist_ok=True)
            self._of(name).write_bytes(function)

    def write_inputs(self, inputs: Sequence[Any]) -> None:
        """Write the inputs. Raises WrongRequest, with one line, for what cannot travel."""
        arrays = {at: each for at, each in enumerate(inputs, 1) if _is_array(each)}
        forms = tuple(Form.of(each, f"input {at}") for at, each in arrays.items())
        values = [None if at in arrays else Value(each) for at, each in enumerate(inputs, 1)]
        if not forms:  # a kernel has an array at least, which no function gets
            arrays, forms = {0: np.zeros(())}, (Form((), np.dtype(np.float64)),)
        _check_memory(forms)
        kept = [form.kept(each) for form, each in zip(forms, arrays.values(), strict=True)]
        (self.path / "values").write_bytes(travel.packed_values(values))
        np.savez(self.path / "inputs.npz", **{str(at): each for at, each in enumerate(kept)})  # type: ignore[arg-type]  # no name is an option
        self._write("inputs", forms)

    def write_answer(self, outputs: tuple[Form, ...], references: Sequence[Reference], width: float | None) -> None:
        """Write what a right function gives."""
        parts = {
            f"{part}{at}": array
            for at, reference in enumerate(references)
            for part in ("value", "bound", "overflow")
            if (array := getattr(reference, part)) is not None
        }
        np.savez(self.path / "answer.npz", **parts)
        self._write("outputs", outputs)
        self._write("width", width)

    def write_changes(self, changes: list[Change]) -> None:
        self._write("changes", changes)

    @contextmanager
    def known(self) -> Iterator[None]:
        """Within, the race is a kernel, and each of its functions a backend."""
        kernel = self.path / self.facts.kernel
        for folder in (kernel / folders.BACKENDS, kernel / VARIANT):
            folder.mkdir(parents=True)
        (kernel / "problem.py").write_text(_PROBLEM)
        for name in self.facts.names:
            backend = backend_of(name)
            (kernel / folders.BACKENDS / f"{backend}.py").write_text(_BACKEND.format(name=name))
            (kernel / VARIANT / f"{backend}.txt").write_text(f"{name}\n")
        with folders.known(folders.kernel_at(kernel)):
            yield

    def _of(self, name: str) -> Path:
        return self.path / "functions" / name

    def _read(self, what: str) -> Any:
        return pickle.loads((self.path / what).read_bytes())  # noqa: S301  # we wrote it

    def _write(self, what: str, value: Any) -> None:
        (self.path / what).write_bytes(pickle.dumps(value))


@dataclass(frozen=True)
class Value:
    """An argument that is no array."""

    value: Any


@contextmanager
def new() -> Iterator[Race]:
    """An empty folder for a race, which is gone afterwards. Raises WrongRequest where there is no place for one."""
    path = temporary.folder()
    if path is None:
        raise WrongRequest(f"a race needs a temporary folder, and {tempfile.gettempdir()} has no place for one")
    try:
        yield Race(path)
    finally:
        temporary.remove(path)


def backend_of(name: str) -> str:
    """The backend of a function: no other one has such a name."""
    return f"{name}{folders.CALL}"


def _is_array(value: Any) -> bool:
    """Whether it is an array that shared memory can hold. Of a class of its own it is passed on as it is."""
    return type(value) in (np.ndarray, np.memmap)


def _check_memory(forms: Sequence[Form]) -> None:
    """Raise WrongRequest, with one line, if this machine has too little memory for the right answer."""
    needed = _OF_ANSWER * np.dtype(np.float64).itemsize * sum(form.size for form in forms)
    free = machine.free_memory()
    if needed > free:
        raise WrongRequest(
            f"a race on these inputs needs about {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free: "
            "give it smaller ones"
        )
