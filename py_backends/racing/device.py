"""A function as a backend: its device calls it with arrays in the shapes and dtypes in which they were given."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from py_backends import contract
from py_backends.contract import Array, Buffer, Launch, Target
from py_backends.errors import WrongResult
from py_backends.kernel_text import KernelText
from py_backends.number_formats import FORMATS
from py_backends.racing import kept
from py_backends.racing.folder import Race
from py_backends.racing.form import arrays_of, in_words, remedy
from py_backends.reference import TOO_WIDE, remark_of_width

_OF_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS")
"""What libraries that are loaded later read."""
_MOST_MOVES, _MOVED_BY = 16, 1 << 16
"""The most pieces of memory that move a result, and their bytes. More would go back to the system after each call, and
the next one would wait for new pages."""
_READ_ONLY = ("read-only", "readonly", "read only")
"""What libraries say where they cannot write to an array, or are not to."""


class Function(contract.Backend):
    """The backend of any function."""

    dtypes = tuple(FORMATS)
    race: ClassVar[Race]
    name: ClassVar[str]

    def targets(self) -> list[Target]:
        return [Target("cpu")]

    def open(self, target: str, threads: int) -> contract.Device:
        return Device(self.race, self.name, threads)


def backend(folder: Path, name: str) -> type[Function]:
    """The class of the backend of a function. The first one is the baseline."""
    race = Race(folder)
    return type("Backend", (Function,), {"race": race, "name": name, "baseline": name == race.facts.names[0]})


class Device(contract.Device):
    """Calls one function. Buffers of inputs are the arrays that it gets, those of outputs what it gave last.

    Inputs lie where the harness has them, and cannot be written to. A result is waited for by making it an array of
    NumPy, and copied to its place in the download, which is no part of the kernel's time.
    """

    on_cpu = False
    """Nobody knows what a function moves or computes, or where: the CPU's ceilings are none of it."""

    def __init__(self, race: Race, name: str, threads: int) -> None:
        self._race, self._name, self._threads = race, name, threads
        self._pending: tuple[list[Output], Any] | None = None
        self._values: bytes | None = None
        self._function: Callable[..., Any]
        self.note = _note(race.width or 0.0, first=name == race.facts.names[0])

    def prepare(self, text: KernelText, dtype: np.dtype[Any]) -> Launch:
        import threadpoolctl  # here, since it sets a variable, and the harness knows this module too

        os.environ.update(dict.fromkeys(_OF_THREADS, str(self._threads)))
        function = self._function = self._race.function(self._name)
        threadpoolctl.threadpool_limits(self._threads)  # of those that are loaded
        takes, race = len(self._race.inputs), self._race
        self._values = race.packed_values()

        def launch(buffers: Sequence[Buffer], _: Sequence[Any]) -> None:
            try:
                self._pending = list(buffers[takes:]), function(*race.arguments(buffers[:takes]))
            except (ValueError, TypeError) as error:
                if not any(word in str(error) for word in _READ_ONLY):
                    raise
                wants = "changes an input, or asks for arrays that it may change"
                raise WrongResult(f"{self._name} {wants}: {error}") from error

        return launch

    def place_one(self, launch: Launch, sizes: Sequence[Any], at: int, array: Array, *, filled: bool) -> Buffer:
        inputs = self._race.inputs
        if at >= len(inputs):
            return Output(at - len(inputs), _moved(array))
        given = inputs[at].given(array)
        given.flags.writeable = False
        return given

    def upload(self, array: Array) -> Buffer:
        return array

    def allocate(self, array: Array) -> Buffer:
        return array

    def wait(self) -> None:
        if self._pending is None:
            return
        (outputs, answer), self._pending = self._pending, None
        arrays = arrays_of(answer, self._race.outputs)
        for output in outputs:
            output.answer = arrays

    def download(self, buffer: Buffer, array: Array) -> None:
        if not isinstance(buffer, Output):  # the function got what lies in the array's own place
            return
        answer, right = buffer.answer, self._race.outputs
        if [(each.shape, each.dtype) for each in answer] != [(form.shape, form.dtype) for form in right]:
            both = f"{self._name} returns {in_words(answer)}, and {self._race.facts.judge} {in_words(right)}"
            raise WrongResult(both + remedy(answer, right))
        right[buffer.at].given(array)[...] = answer[buffer.at]
        if self._values is not None:
            before, self._values = self._values, None  # one look is enough, and takes long
            if self._race.packed_values() != before:
                raise WrongResult(f"{self._name} changes an input that is no array")

    def remark(self, launch: Launch, sizes: Sequence[Any], arrays: Sequence[Array]) -> str | None:
        race, function = self._race, self._function
        own = [self.place_one(launch, sizes, at, arrays[at], filled=True) for at in range(len(race.inputs))]

        def call(given: Sequence[Array]) -> tuple[Array, ...]:
            return arrays_of(function(*race.arguments(given)), race.outputs)

        return kept.remark(self._name, call, own, race.inputs, race.references, race.changes)

    def release(self, buffer: Buffer) -> None:
        if isinstance(buffer, Output):
            buffer.answer = ()


def _note(width: float, *, first: bool) -> str | None:
    """What is to be said of a bound of this width: of one that judges nothing in each row, else in the first one."""
    if width > TOO_WIDE:
        wide = f"the bound is {width:.2g} times the values, in the median"
        return f"{wide}, so that nobody knows whether it is right: give a tolerance"
    remark = remark_of_width(width) if first else None
    return remark and f"{remark}, and a tolerance may judge more"


def _moved(array: Array) -> list[Array]:
    """Memory like an output's, which keeps what a function allocates from its usual place, until it is given back.

    Where results lie makes small functions some per cent faster or slower, for the life of a process. So it is drawn by
    lot, as the harness does for inputs. (Arena.move)
    """
    most = min(_MOST_MOVES, _MOVED_BY // max(1, array.nbytes))
    return [np.empty_like(array) for _ in range(random.randrange(most + 1))]


class Output:
    """The place of an output: its number, and all that the function gave. It holds what moves that."""

    __slots__ = ("answer", "at", "moved_by")

    def __init__(self, at: int, moved_by: Sequence[Array]) -> None:
        self.at, self.moved_by = at, moved_by
        self.answer: tuple[Array, ...] = ()
