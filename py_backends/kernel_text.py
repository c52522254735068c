"""The source of a kernel for one backend, and what it declares of its launch."""

from __future__ import annotations

import importlib
import math
import os
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from py_backends import folders
from py_backends.number_formats import FORMATS
from py_backends.problem import Problem
from py_backends.source_head import declarations, files_of, formats, includes


@dataclass(frozen=True)
class WorkItems:
    """How a kernel's work items cover its result, as its source declares it:

        Work items: n x ceil(m / 4), in groups of 16 x 16

    The first dimension is the fastest (`x` in CUDA, the last one in SYCL). A count is a sum of products of
    sizes, whole numbers and quotients rounded up.
    """

    counts: tuple[str, ...]
    group: tuple[int, ...]

    _LINE: ClassVar[re.Pattern[str]] = re.compile(r"(.+), in groups of ([1-9]\d*(?: x [1-9]\d*)*)")

    @classmethod
    def parse(cls, counts: str) -> WorkItems:
        """Parse what follows `Work items:`. Raises ValueError if it is unclear."""
        line = cls._LINE.fullmatch(counts)
        names = line[1].split(" x ") if line else []
        if line is None or len(names) != line[2].count("x") + 1 or not all(map(_COUNT.fullmatch, names)):
            raise _unclear(counts, "n x m, in groups of 32 x 8")
        return cls(tuple(names), tuple(map(int, line[2].split(" x "))))

    def groups(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The number of groups in each dimension: at least one, so that a launch is legal."""
        return tuple(
            max(1, -(-_count(count, sizes) // width)) for count, width in zip(self.counts, self.group, strict=True)
        )


@dataclass(frozen=True)
class Bounded:
    """So many elements of scratch memory, where each of some sizes is at most its bound.

    What whole tiles would take may be out of all proportion to narrow arrays.
    """

    elements: int
    most: tuple[tuple[str, int], ...]

    @classmethod
    def parse(cls, elements: str, bounds: str) -> Bounded:
        """Parse a number and conditions: `n <= 128 and m <= 84`."""
        named = (bound.split(" <= ") for bound in bounds.split(" and "))
        return cls(int(elements), tuple((name, int(most)) for name, most in named))

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Whether every size is within its bound. Raises ValueError if the kernel has no size of a name."""
        return all(_size(name, sizes) <= most for name, most in self.most)


class Repeat(NamedTuple):
    """How a source is launched again: for each `most` units of a number of its kernel, or fewer."""

    number: str
    most: int


class KernelLaunch(NamedTuple):
    """One launch of one kernel.

    at: the place of the kernel in `Stages.kernels`.
    buffers, sizes: its arguments.
    groups, group: the number of groups, and of work items in a group, the fastest dimension first.
    """

    at: int
    buffers: Sequence[Any]
    sizes: Sequence[int]
    groups: tuple[int, ...]
    group: tuple[int, ...]


NewScratch = Callable[[int, "np.dtype[Any]", int], Any]
"""Gives memory for so many elements of a dtype. The third number tells pieces of one launch apart."""


@dataclass(frozen=True)
class Stages:
    """The launches of a source: one kernel, or several in order, with scratch memory between them.

    A source declares the kernels in the order of their launch (see `source_head`). It names a kernel whose name is not
    its own. If launches differ between devices, it names the kind: `a CPU`, `a GPU`, or `AMX` for tiles of a CPU:

        Work items of pack on a CPU: ceil(n / 128), in groups of 1
        Work items of multiply on a CPU: ceil(n / 128) x ceil(m / 84), in groups of 1 x 1
        Work items on a GPU: ceil(n / 8) x ceil(m / 8), in groups of 16 x 16
        Scratch on a CPU: ceil(n / 128) * 128 * k elements of Sum, or 65536 where n <= 128 and m <= 84

    With scratch memory, each kernel takes a pointer to it between the outputs and the sizes. Its elements have the type
    of sums, `Sum`, or that of NumPy's name.

    A source may be launched again and again, once for each unit of a number of its kernel, or once for several:

        Repeat: steps
        Repeat: steps, up to 8 a launch

    The first launch reads the input and the last one writes the output. Between them results go to the output and to
    memory like it, in turn, so that none is copied. In place of the number, each launch is told its share: 1, or up to
    as many as the line says, almost equal ones. If the number is 0, there is one launch, which is told 0, and copies.
    """

    kernels: tuple[tuple[str, WorkItems], ...]
    scratch: str | None = None
    scratch_dtype: str | None = None
    bounded: Bounded | None = None
    repeat: Repeat | None = None

    _NAME: ClassVar[re.Pattern[str]] = re.compile(
        r"(Work items(?: of (?P<kernel>\w+))?|Scratch|Repeat|Formats|Order)(?: on (?:a )?(?P<device>\w+))?"
    )
    _UNITS: ClassVar[re.Pattern[str]] = re.compile(r"(\w+)(?:, up to ([1-9]\d*) a launch)?")
    _ELEMENTS: ClassVar[re.Pattern[str]] = re.compile(
        r"(.*) elements of (\w+)(?:, or ([1-9]\d*) where (\w+ <= \d+(?: and \w+ <= \d+)*))?"
    )

    @classmethod
    def parse(cls, text: str, kernel: str, device: str | None = None) -> Stages:
        """Parse what a source declares for a kind of device. Raises ValueError if that is missing or unclear.

        kernel: the name of a kernel that its declaration does not name.
        device: `CPU`, `GPU` or `AMX`; None for what holds on all.
        """
        kernels, of_once = list[tuple[str, WorkItems]](), dict[str, str]()
        for said, value in declarations(text):
            name = cls._NAME.fullmatch(said)
            if name is None:
                raise ValueError(f"unknown below --- in the head comment: {said!r}")
            if name["device"] not in (None, device):
                continue
            if name[1].startswith("Work items"):
                kernels.append((name["kernel"] or kernel, WorkItems.parse(value)))
            elif name[1] in of_once:
                raise ValueError(f"twice below --- in the head comment: {said!r}")
            else:
                of_once[name[1]] = value
        if not kernels:
            raise ValueError("the head comment lacks 'Work items: ..., in groups of ...', below a line ---")
        return cls(tuple(kernels), *cls._scratch(of_once.get("Scratch")), cls._repeat(of_once.get("Repeat")))

    @classmethod
    def _scratch(cls, said: str | None) -> tuple[str | None, str | None, Bounded | None]:
        if said is None:
            return None, None, None
        line = cls._ELEMENTS.fullmatch(said)
        if line is None or not _COUNT.fullmatch(line[1]) or line[2] not in (_SUM, *FORMATS):
            raise _unclear(said, "ceil(n / 256) * m elements of Sum")
        return line[1], line[2], Bounded.parse(line[3], line[4]) if line[3] else None

    @classmethod
    def _repeat(cls, said: str | None) -> Repeat | None:
        units = None if said is None else cls._UNITS.fullmatch(said)
        if said is not None and units is None:
            raise _unclear(said, "steps, or steps, up to 8 a launch")
        return Repeat(units[1], int(units[2] or 1)) if units else None

    def scratch_elements(self, sizes: Mapping[str, int]) -> int | None:
        """The elements of the scratch memory; None without scratch memory."""
        if self.scratch is None:
            return None
        return self.bounded.elements if self.bounded and self.bounded.holds(sizes) else _count(self.scratch, sizes)

    def scratch_dtypes(self, problem: Problem, dtype: np.dtype[Any]) -> list[np.dtype[Any]]:
        """That of the elements of the scratch memory in a run in a dtype; none without scratch memory."""
        if self.scratch is None:
            return []
        return [problem.sum_dtype(dtype) if self.scratch_dtype in (None, _SUM) else np.dtype(self.scratch_dtype)]

    def launches(
        self, problem: Problem, dtype: np.dtype[Any], buffers: Sequence[Any], sizes: Sequence[int], scratch: NewScratch
    ) -> Iterator[KernelLaunch]:
        """Every launch of kernels on buffers (inputs, then outputs) at these sizes, in order.

        scratch: gives memory for elements of a dtype, the same each time for one number of a piece.
        """
        named = dict(zip(problem.parameters, sizes, strict=True))
        elements = self.scratch_elements(named)
        own = [scratch(elements or 0, element, 0) for element in self.scratch_dtypes(problem, dtype)]
        if self.repeat is None:
            yield from self._once([*buffers, *own], sizes, named)
            return
        *inputs, output = buffers
        number, read = _size(self.repeat.number, named), _like_output(problem, sizes)
        times = max(1, -(-number // self.repeat.most))
        turns = [output]
        if times > 1:
            turns.append(scratch(math.prod(problem.shapes(sizes)[-1]), problem.array_dtypes(dtype)[-1], 1))
        for left in reversed(range(times)):
            written = turns[left % 2]
            named[self.repeat.number] = number * (left + 1) // times - number * left // times
            yield from self._once([*inputs, written, *own], tuple(named.values()), named)
            inputs[read] = written

    def _once(self, buffers: Sequence[Any], sizes: Sequence[int], named: Mapping[str, int]) -> Iterator[KernelLaunch]:
        for at, (_, work_items) in enumerate(self.kernels):
            yield KernelLaunch(at, buffers, sizes, work_items.groups(named), work_items.group)


def _like_output(problem: Problem, sizes: Sequence[int]) -> int:
    """The place of the first input that has the output's shape: by its signature at all sizes, not only at these.

    Raises ValueError if there is none.
    """
    shapes = problem.size_of_each_dimension() or problem.shapes(sizes)
    *inputs, output = ((shape, problem.own_dtype(at)) for at, shape in enumerate(shapes))
    if problem.outputs > 1 or output not in inputs:
        raise ValueError(f"{problem.name} cannot be repeated: no input has the shape of its output, or it has several")
    return inputs.index(output)


_FACTOR = r"(?:\w+|ceil\(\w+ / [1-9]\d*\))"
_COUNT = re.compile(rf"{_FACTOR}(?: [*+] {_FACTOR})*")


def _count(count: str, sizes: Mapping[str, int]) -> int:
    """The value of a sum of products of sizes, whole numbers and quotients rounded up."""
    return sum(math.prod(_factor(factor, sizes) for factor in term.split(" * ")) for term in count.split(" + "))


def _factor(factor: str, sizes: Mapping[str, int]) -> int:
    if factor.startswith("ceil("):
        dividend, divisor = factor.removeprefix("ceil(").removesuffix(")").split(" / ")
        return -(-_size(dividend, sizes) // int(divisor))
    return int(factor) if factor.isdecimal() else _size(factor, sizes)


def _size(name: str, sizes: Mapping[str, int]) -> int:
    """The size of that name. Raises ValueError if the kernel has none."""
    if not isinstance(sizes.get(name), int):  # there is none, or it is a real number
        there = ", ".join(each for each, size in sizes.items() if isinstance(size, int))
        raise ValueError(f"the head comment names a size {name!r}, and its sizes are {there}")
    return sizes[name]


def _unclear(said: str, right: str) -> ValueError:
    return ValueError(f"unclear below --- in the head comment: {said!r}: write it as in {right}")


_SUM = "Sum"
"""The type of sums: `Problem.sum_dtype`."""


@dataclass(frozen=True)
class KernelText:
    """The source of one kernel for one backend: kernels/KERNEL/VARIANT/BACKEND.*

    package: the package, with dots, in whose folder VARIANT/BACKEND.* lies; None for the project's own.
    """

    problem: Problem
    variant: str
    backend: str
    path: Path
    package: str | None = None

    @property
    def kernel(self) -> str:
        return self.problem.name

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8", errors="replace")  # other encodings may stand in comments

    @property
    def place(self) -> str:
        """Its path for readers: kernels/KERNEL/VARIANT/BACKEND.*, or the same within a plug-in's package.

        That of a source in a folder that was given by its path is this path.
        """
        if self.package and folders.brings(self.package):
            return str(self.path)
        folder = f"kernels.{self.kernel}" if self.package is None else self.package
        return "/".join((*folder.split("."), self.variant, self.path.name))

    @property
    def includes(self) -> list[str]:
        """The files that it includes itself, by their paths for readers."""
        folder = posixpath.dirname(self.place)
        beside = (os.path.relpath(file, self.path.parent) for file in includes(self.path))
        return [posixpath.normpath(posixpath.join(folder, each)) for each in beside]

    @property
    def files(self) -> list[Path]:
        """Its file, and those that it includes, directly or through others; each once, in the order of a reader."""
        return files_of(self.path)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The number formats that it takes: those that it declares, else those of its kernel.

        Formats: float32, float64
        """
        named = formats(self._declared) or self.problem.dtypes
        return tuple(each for each in self.problem.dtypes if each in named)

    def dtypes_on(self, target: str) -> tuple[str, ...]:
        """The number formats that it declares for one target alone, which takes no source that declares none for it.

        Formats on amx: float16, bfloat16, int8
        """
        named = formats(self._declared, target) or []
        return tuple(each for each in self.problem.dtypes if each in named)

    @property
    def in_any_order(self) -> bool:
        """Whether it adds up in an order that differs from call to call, as it declares.

        Then two calls may differ in their last bits, also on a device that is deterministic.

            Order: any, as threads end
        """
        return any(name == "Order" and value.startswith("any") for name, value in self._declared)

    @property
    def _declared(self) -> list[tuple[str, str]]:
        try:
            return declarations(self.text)
        except ValueError:  # which preparing it tells
            return []

    def stages(self, device: str | None = None) -> Stages:
        """Its launches on a kind of device: `CPU`, `GPU` or `AMX`. Raises ValueError if they do not fit its kernel."""
        stages, problem = Stages.parse(self.text, self.kernel, device), self.problem
        if stages.repeat is not None:
            if stages.repeat.number not in problem.numbers or stages.repeat.number in problem.reals:
                raise ValueError(
                    f"the head comment repeats {stages.repeat.number!r}, which is no whole number of the kernel"
                )
            _like_output(problem, problem.default_sizes)
        return stages

    def named_sizes(self, sizes: Sequence[int]) -> dict[str, int]:
        return dict(zip(self.problem.parameters, sizes, strict=True))

    def load(self, part: str | None = None) -> ModuleType:
        """Import a source that is a Python module.

        part: of a source in several modules, such as BACKEND.py and BACKEND_PART.py, the one to import.
        """
        package = self.package or f"py_backends.kernels.{self.kernel}"
        name = self.backend if part is None else f"{self.backend}_{part}"
        return importlib.import_module(f"{package}.{self.variant}.{name}")

    def shaped(self, buffers: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
        """View flat buffers as arrays of the problem's shapes, for kernels that index by row and column."""
        shapes = self.problem.shapes(sizes)
        return [
            buffer if buffer.shape == shape else buffer[: math.prod(shape)].reshape(shape)
            for buffer, shape in zip(buffers, shapes, strict=True)
        ]
