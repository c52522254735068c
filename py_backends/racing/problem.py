"""What a race computes, as a kernel: arrays of lengths that never change, and the answer of the right function."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from py_backends.contract import Array, Problem, Reference
from py_backends.number_formats import DTYPES
from py_backends.racing.folder import Race
from py_backends.racing.form import Form


class Raced(Problem):
    """The problem of any race."""

    race: ClassVar[Race]
    in_any_format = True  # its only inputs may be whole numbers

    def draw(self, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator) -> Iterable[Array]:
        return self.race.kept_inputs()

    def reference(self, inputs: Sequence[Array], *numbers: Any) -> tuple[Reference, ...]:
        return self.race.references()


def problem(folder: Path) -> Problem:
    """The problem of the race in a folder."""
    race = Race(folder)
    facts, dtype = race.facts, format_of(race)
    takes = ",".join(_written(form, dtype) for form in race.inputs)
    gives = ",".join(_written(form, None) for form in race.outputs)
    about = {
        "race": race,
        "name": facts.kernel,
        "signature": f"{takes}->{gives}",
        "inputs": tuple(f"input{at}" for at in range(1, len(race.inputs) + 1)),
        "dtypes": (dtype,),
        "rule": "componentwise" if any(form.is_real for form in race.outputs) else "bitwise",
        "numbers": {} if facts.size is None else {"size": facts.size},
    }
    made: Problem = type("RacedHere", (Raced,), about)()
    return made


def format_of(race: Race) -> str:
    """The number format of a race's rows: that of its first real input, else of its first one."""
    names = [form.kept_as.name for form in race.inputs]
    return next((name for name in names if name in DTYPES and name != "int8"), names[0])


def _written(form: Form, dtype: str | None) -> str:
    """An array in a signature. Without a dtype, it has that of the run."""
    name = form.kept_as.name
    return f"({','.join(map(str, form.kept_shape))})" + ("" if name == dtype else f":{name}")
