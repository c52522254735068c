"""Lines of goals, as the files kernels/KERNEL/goals.py have them: what is asked of whom, against whom, and where."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from benchmarks.contenders import (
    LECTURE_OF_OPENMP,
    STDPAR,
    Comparison,
    Conditions,
    Contender,
    Entry,
    Goal,
    Size,
)

SIZES = (64, 127, 256, 512, 1000, 1024, 2048, 4096)
"""Of square matrices; a geometric mean is over these, unless its goal says otherwise."""
ELEMENTS = 2**26
"""Of the vectors that are far larger than caches; a ceiling of memory needs that."""
ELEMENTS_ON_GPUS = 2**28
WIDE, NARROW = ("float32", "float64"), ("bfloat16", "float16", "int8")
HALVES = ("bfloat16", "float16")
DTYPES = WIDE + NARROW


class Scale(NamedTuple):
    """What the command was given.

    sizes: of square matrices.
    elements: of large vectors.
    """

    sizes: Sequence[int] = SIZES
    elements: int = ELEMENTS

    @property
    def is_usual(self) -> bool:
        """Whether the sizes are the usual ones."""
        return tuple(self.sizes) == SIZES

    @property
    def elements_on_gpus(self) -> int:
        """Of vectors that are large for a GPU."""
        return ELEMENTS_ON_GPUS if self.elements == ELEMENTS else self.elements


Places = tuple[str, list[tuple[Size, Size]]]
"""How a goal says where it holds, and its pairs of sizes: of the subject, and of those that it is compared with."""


def at(*wanted: Size) -> Callable[[Sequence[Size]], Places]:
    """Those of these sizes that there are; none of others."""

    def those(sizes: Sequence[Size]) -> Places:
        chosen = [size for size in sizes if size in wanted]
        named = ("x".join(map(str, size)) if isinstance(size, tuple) else str(size) for size in chosen)
        return f"n = {', '.join(named)}", [(size, size) for size in chosen]

    return those


def every(sizes: Sequence[Any], least: int = 0) -> Places:
    """All sizes, from the least on."""
    chosen = [size for size in sizes if not least or size >= least]
    return f"n >= {least}" if least else f"{len(chosen)} sizes", [(size, size) for size in chosen]


def only(sizes: Sequence[Any], wanted: Sequence[int]) -> Places:
    """Those of these sizes that there are, else the largest one."""
    chosen = [size for size in wanted if size in sizes] or [max(sizes)]
    return f"n = {', '.join(map(str, chosen))}", [(size, size) for size in chosen]


def vectors(sizes: Sequence[int]) -> Places:
    """Vectors of so many elements."""
    (elements,) = sizes
    exponent = elements.bit_length() - 1
    return f"n = 2^{exponent}" if elements == 2**exponent else f"n = {elements}", [(elements, elements)]


largest = partial(only, wanted=())
"""The largest size."""


@dataclass(frozen=True)
class Line:
    """The goals of one contender, in each of these number formats.

    against, what, ratio: as in `Goal`, whose comparisons are with the fastest of these.
    at: where, of the sizes that there are.
    under: what its conditions differ in.
    more: further fields of `Goal`.
    """

    dtypes: Sequence[str]
    subject: Contender
    against: Sequence[Contender]
    what: str
    ratio: float | None
    at: Callable[[Sequence[Any]], Places] = every
    under: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)

    def goals(self, conditions: Conditions, sizes: Sequence[Size]) -> Iterator[Goal]:
        """Nothing in another number format, or where none of the sizes is one of its own."""
        where, pairs = self.at(sizes)
        if conditions.dtype not in self.dtypes or not pairs:
            return
        comparisons = tuple(
            Comparison(Entry(self.subject, size), tuple(Entry(other, near) for other in self.against))
            for size, near in pairs
        )
        fields = {"subject": self.subject.label, "asked": self.ratio, **self.more}
        yield Goal(conditions._replace(**self.under), what=self.what, where=where, comparisons=comparisons, **fields)


def of_directives(at: Callable[[Sequence[Any]], Places] = every) -> Line:
    """The standard's words for a loop on threads, against OpenMP's."""
    return Line(WIDE, STDPAR, (LECTURE_OF_OPENMP,), "of openmp's lecture", 0.75, at)


@dataclass(frozen=True)
class Group:
    """Lines of a kernel that share their sizes and number formats.

    sizes: by the scale.
    on_gpus: whether the number of threads does not matter.
    one_dtype: whether the first of its number formats that is asked for stands for all.
    """

    lines: Sequence[Line]
    dtypes: Sequence[str]
    sizes: Callable[[Scale], Sequence[Size]]
    on_gpus: bool = False
    one_dtype: bool = False

    def chosen(self, dtypes: Sequence[str]) -> list[str]:
        """Those of the number formats that it is measured in."""
        found = [dtype for dtype in dtypes if dtype in self.dtypes]
        return found[:1] if self.one_dtype else found
