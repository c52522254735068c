"""What a kernel computes, whatever computes it: its shapes, the right answer, and its ladders from slow to fast."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from types import MappingProxyType
from typing import Any, ClassVar

import ml_dtypes  # noqa: F401  # makes its formats known to NumPy by their names
import numpy as np
from numpy.typing import NDArray

from py_backends.errors import WrongRequest
from py_backends.number_formats import FORMATS, number_format
from py_backends.signature import Signature

Array = NDArray[Any]


@dataclass(frozen=True)
class Reference:
    """The right answer of one case.

    value: the result, in float64 where a bound is given, else in the dtype of the result.
    bound: the largest allowed error of each element, 0 where it must equal `value`; None where every bit must agree.
    overflow: True where infinity or NaN passes too; None for nowhere.
    """

    value: Array
    bound: Array | None = None
    overflow: Array | None = None


@dataclass(frozen=True)
class Rung:
    """One step of a ladder: a kernel's source that adds an idea to that of the rung below.

    backend, variant: those of the source.
    idea: what it adds, in a few words.
    published: how many times as fast as the first rung it is in the ladder's source; None where that has no such rung.
    published_percent: of the peak of the machine of that source.
    dtype: the number format of its inputs; None for that of the whole ladder.
    target: where it runs; None for the first available one that is not the target of another rung.
    """

    backend: str
    variant: str
    idea: str
    published: float | None = None
    published_percent: float | None = None
    dtype: str | None = None
    target: str | None = None


@dataclass(frozen=True)
class Ladder:
    """A kernel from its slowest source to its fastest, rung by rung.

    rungs: the slowest first.
    sizes: at which the ideas show, and the slow rungs do not take too long.
    source: where the published figures come from, and what they were measured on; None where no rung has any.
    formats: rungs in a narrower number format, which run only on request. They stand above the rungs of their backend.
    name: what tells it from the others of its kernel: the kind of device that it is for.
    """

    rungs: tuple[Rung, ...]
    sizes: tuple[int, ...]
    source: str | None = None
    formats: tuple[Rung, ...] = ()
    name: str | None = None


RULES = ("bitwise", "componentwise")
RATES = ("gflops", "gbytes_per_second")


class Problem(ABC):
    """What a kernel computes, independently of any backend.

    Sizes are tuples of non-negative integers in the order of `parameters`: those of the arrays, then the `numbers` that
    belong to no array. That is the order of the kernel's last parameters and of `--shape`.

    A `signature` gives the shapes. A problem whose shapes it cannot express has `dimensions` and the methods `shapes`
    and `sizes` instead.
    """

    name: ClassVar[str]
    signature: ClassVar[str]
    """The shapes of the inputs and of the output by their sizes: `(m,k),(k,n)->(m,n)` (`py_backends.signature`)."""
    dimensions: ClassVar[tuple[str, ...]]
    """The names of the sizes. With a signature: those of the output first, then the others."""
    numbers: ClassVar[Mapping[str, int]] = MappingProxyType({})
    """Whole numbers that belong to no array, such as steps, by name with their defaults. The Python function has them
    as named arguments."""
    nonzero_sizes: ClassVar[tuple[str, ...]] = ()
    """The names of those sizes of arrays that may not be 0."""
    inputs: ClassVar[tuple[str, ...]] = ("a", "b")
    """The names of the inputs, in the order of the kernel's first parameters; at least one. They may be neither
    keywords of Python nor options of the Python functions. With a signature, if no names are given: those that
    `reference` has, else a, b and so on."""
    rule: ClassVar[str] = "componentwise"
    """How results are judged, one of `RULES`."""
    rate: ClassVar[str] = "gbytes_per_second"
    """The usual rate of this kernel, one of `RATES`."""
    dtypes: ClassVar[tuple[str, ...]] = ("float32", "float64")
    """The number formats that inputs may have, by their names in NumPy."""
    results: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The dtype of the result by that of the inputs, where the two differ."""
    sums: ClassVar[Mapping[str, str]] = MappingProxyType(
        {each.name: each.sums for each in FORMATS.values() if each.sums}
    )
    """The dtype of the arithmetic by that of the inputs, where the two differ. Sources call it `Sum`. In sources in C++
    it is always as given here."""
    in_place: ClassVar[bool] = False
    """Whether the output may be one of the inputs."""
    default_sizes: ClassVar[tuple[int, ...]]
    """At which `compare` runs it: a size for each of `parameters`. With a signature, if none are given: those of the
    arrays are equal, and all arrays have about 2^22 elements together."""
    by_default: ClassVar[bool] = False
    """Whether commands run it if no kernel is named. That is for few kernels: `--kernel all` takes every one."""
    edges: ClassVar[tuple[tuple[int, ...], ...]] = ()
    """Sizes at which a source may go wrong. The conformance suite tries them beside its own sizes."""
    ladder: ClassVar[Ladder | None] = None
    """For the command `ladder`; None for a kernel without one."""
    steps: ClassVar[tuple[Ladder, ...]] = ()
    """From `lecture` to `tuned` with one idea a rung, for each kind of device: for `ladder --steps`."""
    in_numpy: ClassVar[str | None] = None
    """What users of NumPy write for it, such as `np.add(a, b, out=c)`. Its arrays are `a`, `b` and so on, whatever they
    are called elsewhere: the inputs, then the output. None where that takes more than one statement. Where the result
    has another dtype than the inputs, it need not be right."""

    _parsed: ClassVar[Signature | None] = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "signature" in cls.__dict__:
            cls._parsed = Signature.parse(cls.signature)
            cls.dimensions = cls._parsed.dimensions
            *shapes, _ = cls._parsed.arrays
            if named := _parameters_by_name(cls):
                cls.reference = _with_inputs(cls.reference, len(shapes))  # type: ignore[method-assign]  # as the harness calls it
                if "inputs" not in cls.__dict__:
                    cls.inputs = named[: len(shapes)]
            if "inputs" in cls.__dict__ and len(cls.inputs) != len(shapes):
                raise WrongRequest(f"its inputs are {cls.inputs}, and its signature {cls.signature} has {len(shapes)}")
            if len(cls.inputs) != len(shapes):
                cls.inputs = tuple(ascii_lowercase[: len(shapes)])
            if not hasattr(cls, "default_sizes"):
                cls.default_sizes = (*_usual_sizes(cls._parsed), *cls.numbers.values())

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of all sizes: `dimensions`, then `numbers`."""
        return (*self.dimensions, *self.numbers) if self.numbers else self.dimensions

    def whole_sizes(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Sizes of the arrays, with the defaults of the numbers behind them; sizes that have all are left as they are.

        Raises WrongRequest for another count.
        """
        if len(sizes) == len(self.dimensions):
            return (*sizes, *self.numbers.values())
        if len(sizes) != len(self.parameters):
            wanted = " x ".join(self.parameters)
            raise WrongRequest(f"{self.name} takes the sizes {wanted}: got {len(sizes)} of them")
        return tuple(sizes)

    def equal_sizes(self, size: int) -> tuple[int, ...]:
        """Sizes of arrays that are all the same. The numbers are their defaults."""
        return self.whole_sizes((size,) * len(self.dimensions))

    def resized(self, sizes: Sequence[int], change: Callable[[int], int]) -> tuple[int, ...]:
        """Sizes of other arrays, each changed. The numbers stay as they are."""
        count = len(self.dimensions)
        return (*map(change, sizes[:count]), *sizes[count:])

    def shapes(self, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """The shape of every array for `sizes`: inputs, then output. ValueError for unsupported sizes."""
        if self.nonzero_sizes:
            self._check_nonzero(sizes)
        return self._signature().shapes(sizes[: len(self.dimensions)] if self.numbers else sizes)

    def sizes(self, *inputs: Array) -> tuple[int, ...]:
        """The sizes of inputs that have the right `shapes`, without numbers; ValueError, in one line, for others."""
        sizes = self._signature().sizes(self.name, self.inputs, tuple([array.shape for array in inputs]))
        if self.nonzero_sizes:
            self._check_nonzero(sizes)
        return sizes

    def _check_nonzero(self, sizes: Sequence[int]) -> None:
        for name, size in zip(self.dimensions, sizes, strict=False):
            if size == 0 and name in self.nonzero_sizes:
                raise ValueError(f"{self.name} takes {name} of at least 1: got 0")

    def size_of_each_dimension(self) -> tuple[tuple[int, ...], ...] | None:
        """For each array and dimension, the index of its size; of a length that never changes, its negative.

        None where the problem has its own `shapes`.
        """
        if self._parsed is None or type(self).shapes is not Problem.shapes:
            return None
        return self._parsed.places

    def _signature(self) -> Signature:
        if self._parsed is None:
            raise TypeError(f"{type(self).__name__} has neither a signature nor the methods shapes and sizes")
        return self._parsed

    def draw(self, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator) -> Iterable[Array]:
        """Random inputs for a comparison, of the shapes above: the same for the same generator.

        They may have a wider format: they are rounded to `dtype` once.
        """
        *shapes, _ = self.shapes(sizes)
        return (number_format(dtype).draw(shape, generator) for shape in shapes)

    @abstractmethod
    def reference(self, inputs: Sequence[Array]) -> Reference:
        """The right answer for `inputs`, arrays of the shapes above and of one dtype.

        A problem with `numbers` gets them behind the inputs. It may have a parameter for each input in place of one for
        all, which then are the names of the inputs. An array alone stands for one of which every bit must agree.
        """

    def flops(self, sizes: Sequence[int]) -> int:
        """Floating-point operations of one run; 0 where nobody counts them."""
        return 0

    def bytes(self, sizes: Sequence[int], dtype: np.dtype[Any]) -> int:
        """The fewest bytes one run can move: every input, of `dtype`, read once, the output written once."""
        *inputs, output = (int(np.prod(shape, dtype=object)) for shape in self.shapes(sizes))
        return sum(inputs) * dtype.itemsize + output * self.result_dtype(dtype).itemsize

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """The dtype of the result for inputs of a dtype."""
        if not self.results:  # first, since NumPy takes most of a microsecond for a name
            return dtype
        return np.dtype(self.results.get(dtype.name, dtype))

    def sum_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """The dtype of the arithmetic for inputs of a dtype."""
        return np.dtype(self.sums.get(dtype.name, dtype))

    def least_communication(self, sizes: Sequence[int], dtype: np.dtype[Any], ranks: int) -> float | None:
        """A lower bound of the bytes that some rank sends or receives, if so many share work and arrays evenly.

        It holds for any algorithm and any amount of memory. None where no bound is known.
        """
        return None

    def work(self, sizes: Sequence[int]) -> int:
        """A number that run time is about proportional to, for estimates: operations, else bytes."""
        return max(1, self.flops(sizes) or self.bytes(sizes, np.dtype(np.int8)))


def _parameters_by_name(problem: type[Problem]) -> tuple[str, ...]:
    """The parameters of a problem's own `reference` where it has one for each input; none where it has one for all."""
    own = problem.__dict__.get("reference")
    _, *names = inspect.signature(own).parameters if own else ("self", _ALL_INPUTS)
    return () if names[:1] == [_ALL_INPUTS] else tuple(names)


def _with_inputs(reference: Callable[..., Any], count: int) -> Callable[..., Reference]:
    """A `reference` as the harness calls it, of one that has a parameter for each of so many inputs."""

    def of_inputs(self: Problem, inputs: Sequence[Array], *numbers: int, **named: int) -> Reference:
        answer = reference(self, *inputs[:count], *numbers, **named)
        return answer if isinstance(answer, Reference) else Reference(np.asarray(answer))

    return of_inputs


def _usual_sizes(signature: Signature) -> tuple[int, ...]:
    """Equal sizes at which all arrays have about `_ELEMENTS` elements together."""
    least, most = 1, _ELEMENTS
    while least < most:
        size = (least + most + 1) // 2
        elements = sum(math.prod(shape) for shape in signature.shapes((size,) * len(signature.dimensions)))
        least, most = (size, most) if elements <= _ELEMENTS else (least, size - 1)
    return (least,) * len(signature.dimensions)


_ALL_INPUTS = "inputs"
_ELEMENTS = 1 << 22
