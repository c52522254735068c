"""What a kernel computes, whatever computes it: its shapes, the right answer, and its ladders from slow to fast."""

from __future__ import annotations

import functools
import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import ascii_lowercase
from types import MappingProxyType
from typing import Any, ClassVar

import ml_dtypes  # noqa: F401  # makes its formats known to NumPy by their names
import numpy as np

from py_backends.errors import WrongRequest
from py_backends.number_formats import FORMATS, number_format
from py_backends.reference import Array, Reference
from py_backends.signature import Signature
from py_backends.stored_inputs import stored_arrays, stored_shapes


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
    belong to no array, some of which may be real. That is the order of the kernel's last parameters and of `--shape`.

    A `signature` gives the shapes. A problem whose shapes it cannot express has `dimensions` and the methods `shapes`
    and `sizes` instead.
    """

    name: ClassVar[str]
    signature: ClassVar[str]
    """The shapes of the inputs and of the outputs by their sizes: `(m,k),(k,n)->(m,n)` (`py_backends.signature`). An
    array that has one dtype whatever a run's is says so: `(m,n),(n):int32->(m),(m):int64`."""
    dimensions: ClassVar[tuple[str, ...]]
    """The names of the sizes. With a signature: those of the outputs first, then the others."""
    numbers: ClassVar[Mapping[str, int | float]] = MappingProxyType({})
    """Numbers that belong to no array, by name with their defaults. One whose default is whole is whole, from 0 on,
    such as steps. One whose default is a float is real, such as alpha = 2.0. The Python function has them as named
    arguments. Sources take real ones in the dtype of the arithmetic, `Sum`, and everybody gets them rounded to that."""
    nonzero_sizes: ClassVar[tuple[str, ...]] = ()
    """The names of those sizes and numbers that may not be 0, such as the window of a mean."""
    largest_sizes: ClassVar[Mapping[str, int]] = MappingProxyType({})
    """The most that a size or a number may be, by its name: 2^31 - 1 of what is counted in int32."""
    inputs: ClassVar[tuple[str, ...]] = ("a", "b")
    """The names of the inputs, in the order of the kernel's first parameters; at least one. They may be neither
    keywords of Python nor options of the Python functions. With a signature, if no names are given: those that
    `reference` or `function` has, else a, b and so on."""
    outputs: ClassVar[int] = 1
    """How many arrays a kernel writes, behind its inputs. With a signature: as many as that has."""
    rule: ClassVar[str] = "componentwise"
    """How results are judged, one of `RULES`."""
    rate: ClassVar[str] = "gbytes_per_second"
    """The usual rate of this kernel, one of `RATES`."""
    dtypes: ClassVar[tuple[str, ...]] = ("float32", "float64")
    """The number formats in which it runs, by NumPy's names: those of the inputs without a dtype of their own."""
    results: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The dtype of the outputs by that of the inputs, where the two differ."""
    sums: ClassVar[Mapping[str, str]] = MappingProxyType(
        {each.name: each.sums for each in FORMATS.values() if each.sums}
    )
    """The dtype of the arithmetic by that of the inputs, where the two differ. Sources call it `Sum`. In sources in C++
    it is always as given here."""
    in_place: ClassVar[bool] = False
    """Whether the output may be one of the inputs."""
    default_sizes: ClassVar[tuple[Any, ...]]
    """At which `compare` runs it: a size for each of `parameters`. With a signature, if none are given: those of the
    arrays are equal, and all arrays have about 2^22 elements together."""
    data: ClassVar[str | None] = None
    """A file of NumPy (`.npz`) beside problem.py, with the inputs by their names. Their sizes are the default ones, and
    at these a comparison runs on what it holds. At others, inputs are drawn."""
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

    function: ClassVar[Callable[..., Any] | None] = None
    """What it computes, in plain NumPy: of the inputs, and then of the numbers. `reference` comes from it by default,
    with a bound that holds for any order of its sums (`py_backends.bounds`)."""
    tolerance: ClassVar[float | Mapping[str, float] | None] = None
    """In place of that bound, where there is none or one that judges nothing: the largest error of an element, relative
    to the largest element of its output. One for all dtypes of a run, or one for each by its name."""
    ulps: ClassVar[Mapping[str, float]] = MappingProxyType({})
    """Errors of functions that a right library may have, where they are larger than usual: see `bounds.bounded`."""

    in_any_format: ClassVar[bool] = False
    """Whether `dtypes` may have formats in which no kernel runs, such as int32. That is for races of functions."""

    _parsed: ClassVar[Signature | None] = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _keep_others_out(cls)
        if "function" in cls.__dict__ and "reference" not in cls.__dict__:
            cls.reference = _of_function  # type: ignore[assignment, method-assign]  # as the harness calls it
        if "signature" in cls.__dict__:
            cls._parsed = Signature.parse(cls.signature)
            cls.dimensions, cls.outputs = cls._parsed.dimensions, cls._parsed.outputs
            count = len(cls._parsed.arrays) - cls.outputs
            if named := _parameters_by_name(cls):
                cls.reference = _with_inputs(cls.reference, count)  # type: ignore[method-assign]  # as the harness calls it
                if "inputs" not in cls.__dict__:
                    cls.inputs = named[:count]
            elif "inputs" not in cls.__dict__ and (function := _plain_function(cls)):
                cls.inputs = tuple(inspect.signature(function).parameters)[:count]
            if "inputs" in cls.__dict__ and len(cls.inputs) != count:
                raise WrongRequest(f"its inputs are {cls.inputs}, and its signature {cls.signature} has {count}")
            if len(cls.inputs) != count:
                cls.inputs = tuple(ascii_lowercase[:count])
            if cls.data is not None:
                of_arrays = cls._parsed.sizes(cls.name, cls.inputs, stored_shapes(_beside(cls, cls.data), cls.inputs))
                cls.default_sizes = (*of_arrays, *cls.numbers.values())
            elif not hasattr(cls, "default_sizes"):
                cls.default_sizes = (*_usual_sizes(cls._parsed), *cls.numbers.values())

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of all sizes: `dimensions`, then `numbers`."""
        return (*self.dimensions, *self.numbers) if self.numbers else self.dimensions

    def whole_sizes(self, sizes: Sequence[Any]) -> tuple[Any, ...]:
        """Sizes of the arrays, with the defaults of the numbers behind them; sizes that have all are left as they are.

        Raises WrongRequest for another count.
        """
        if len(sizes) == len(self.dimensions):
            return (*sizes, *self.numbers.values())
        if len(sizes) != len(self.parameters):
            wanted = " x ".join(self.parameters)
            raise WrongRequest(f"{self.name} takes the sizes {wanted}: got {len(sizes)} of them")
        return tuple(sizes)

    def rounded(self, sizes: Sequence[Any], dtype: np.dtype[Any]) -> tuple[Any, ...]:
        """Sizes and numbers of one run, the real ones rounded to the dtype of its arithmetic."""
        if not self.reals:
            return tuple(sizes)
        real = self.sum_dtype(dtype).type
        with np.errstate(over="ignore"):
            return tuple(
                float(real(each)) if name in self.reals else each
                for name, each in zip(self.parameters, sizes, strict=True)
            )

    def scalars(self, sizes: Sequence[Any], dtype: np.dtype[Any]) -> tuple[Any, ...]:
        """The same for compiled sources: 64-bit integers, and real numbers of the dtype of the arithmetic."""
        if not self.reals:
            return tuple(map(np.int64, sizes))
        real = self.sum_dtype(dtype).type
        return tuple(
            (real if name in self.reals else np.int64)(each) for name, each in zip(self.parameters, sizes, strict=True)
        )

    @cached_property
    def reals(self) -> frozenset[str]:
        """The names of those numbers that are real."""
        return frozenset(name for name, default in self.numbers.items() if isinstance(default, float))

    def equal_sizes(self, size: int) -> tuple[Any, ...]:
        """Sizes of arrays that are all the same. The numbers are their defaults."""
        return self.whole_sizes((size,) * len(self.dimensions))

    def resized(self, sizes: Sequence[Any], change: Callable[[int], int]) -> tuple[Any, ...]:
        """Sizes of other arrays, each changed. The numbers stay as they are."""
        count = len(self.dimensions)
        return (*map(change, sizes[:count]), *sizes[count:])

    def shapes(self, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """The shape of every array for `sizes`, with the numbers behind: inputs, then outputs.

        ValueError for unsupported sizes and numbers.
        """
        if self.nonzero_sizes or self.largest_sizes:  # a call of a microsecond comes here
            self._check_sizes(sizes)
        return self._signature().shapes(sizes[: len(self.dimensions)] if self.numbers else sizes)

    def sizes(self, *inputs: Array) -> tuple[int, ...]:
        """The sizes of inputs that have the right `shapes`, without numbers; ValueError, in one line, for others."""
        sizes = self._signature().sizes(self.name, self.inputs, tuple([array.shape for array in inputs]))
        if self.nonzero_sizes or self.largest_sizes:
            self._check_sizes(sizes)
        return sizes

    def _check_sizes(self, sizes: Sequence[int]) -> None:
        for name, size in zip(self.parameters, sizes, strict=False):
            if size == 0 and name in self.nonzero_sizes:
                what = "other than 0" if name in self.reals else "of at least 1"
                raise ValueError(f"{self.name} takes {name} {what}: got 0")
            if size > self.largest_sizes.get(name, math.inf):
                raise ValueError(f"{self.name} takes {name} of at most {self.largest_sizes[name]}: got {size}")

    def size_of_each_dimension(self) -> tuple[tuple[int, ...], ...] | None:
        """For each array and dimension, the index of its size; of a length that never changes, its negative.

        None where the problem has its own `shapes`, or where a length is a size and some more, or always 0.
        """
        told = self._signature_of_shapes
        return None if told is None else told.places

    @property
    def _signature_of_shapes(self) -> Signature | None:
        """The signature, unless the problem has `shapes` of its own, as one that was derived from another may have."""
        return self._parsed if type(self).shapes is Problem.shapes else None

    def _signature(self) -> Signature:
        if self._parsed is None:
            raise TypeError(f"{type(self).__name__} has neither a signature nor the methods shapes and sizes")
        return self._parsed

    def draw(self, sizes: Sequence[int], dtype: np.dtype[Any], generator: np.random.Generator) -> Iterable[Array]:
        """Random inputs for a comparison, of the shapes above: the same for the same generator.

        They may have a wider format: they are rounded to `dtype` once.
        """
        arrays = zip(self.inputs, self.shapes(sizes), self.array_dtypes(dtype), strict=False)
        return (number_format(of_array).draw(shape, generator) for _, shape, of_array in arrays)

    def given(self, sizes: Sequence[Any], dtype: np.dtype[Any], generator: np.random.Generator) -> Iterable[Array]:
        """The inputs of a comparison: those of its file at their sizes, else drawn ones."""
        of_arrays = slice(len(self.dimensions))
        if self.data is None or tuple(sizes)[of_arrays] != self.default_sizes[of_arrays]:
            return self.draw(sizes, dtype, generator)
        return stored_arrays(_beside(type(self), self.data), self.inputs)

    @abstractmethod
    def reference(self, inputs: Sequence[Array]) -> Reference | tuple[Reference, ...]:
        """The right answer for `inputs`, arrays of the shapes and dtypes above; one for each output if it has several.

        By default that of `function`. A problem with `numbers` gets them behind the inputs. It may have a parameter for
        each input in place of one for all, which then are the names of the inputs. An array alone stands for one of
        which every bit must agree.
        """

    def flops(self, sizes: Sequence[int]) -> int:
        """Floating-point operations of one run; 0 where nobody counts them."""
        return 0

    def bytes(self, sizes: Sequence[int], dtype: np.dtype[Any]) -> int:
        """The fewest bytes one run in a dtype can move: every input read once, every output written once."""
        return sum(
            math.prod(shape) * of_array.itemsize
            for shape, of_array in zip(self.shapes(sizes), self.array_dtypes(dtype), strict=True)
        )

    def array_dtypes(self, dtype: np.dtype[Any]) -> tuple[np.dtype[Any], ...]:
        """The dtype of every array in a run in a dtype: inputs, then outputs."""
        found = self._dtypes_of_runs.get(dtype)
        if found is None:
            of_run = [dtype] * len(self.inputs) + [self.result_dtype(dtype)] * self.outputs
            own = map(self.own_dtype, range(len(of_run)))
            found = tuple(given if always is None else always for always, given in zip(own, of_run, strict=True))
            self._dtypes_of_runs[dtype] = found
        return found

    @cached_property
    def _dtypes_of_runs(self) -> dict[np.dtype[Any], tuple[np.dtype[Any], ...]]:
        """Those that `array_dtypes` has been asked for: a call of a microsecond asks too."""
        return {}

    @cached_property
    def one_dtype(self) -> bool:
        """Whether no array has a dtype of its own."""
        told = self._signature_of_shapes
        return told is None or not any(told.dtypes)

    def own_dtype(self, at: int) -> np.dtype[Any] | None:
        """The dtype that an array always has; None where that is chosen for a run."""
        told = self._signature_of_shapes
        name = None if told is None else told.dtypes[at]
        return None if name is None else np.dtype(name)

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """The dtype of outputs without one of their own in a run in a dtype."""
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


def rounded_to(dtype: np.dtype[Any], numbers: Array) -> Array:
    """Numbers that were drawn, in the dtype of their array: whole ones where that has no others."""
    if dtype.kind == "i" and numbers.dtype.kind == "f":
        numbers = np.rint(numbers)
    return numbers.astype(dtype)


def _keep_others_out(problem: type[Problem]) -> None:
    """Let a problem's own `shapes` raise for sizes that it may not have, as the usual one does."""
    shapes = problem.__dict__.get("shapes")
    if shapes is None:
        return

    @functools.wraps(shapes)
    def of_sizes(self: Problem, sizes: Sequence[Any]) -> Any:
        self._check_sizes(sizes)
        return shapes(self, sizes)

    problem.shapes = of_sizes  # type: ignore[method-assign]  # as everybody calls it


def _beside(problem: type[Problem], name: str) -> Path:
    """The path of a file in the folder of a problem's own file."""
    return Path(inspect.getfile(problem)).with_name(name)


def _parameters_by_name(problem: type[Problem]) -> tuple[str, ...]:
    """The parameters of a problem's own `reference` where it has one for each input; none where it has one for all."""
    own = problem.__dict__.get("reference")
    if own is _of_function:
        return ()
    _, *names = inspect.signature(own).parameters if own else ("self", _ALL_INPUTS)
    return () if names[:1] == [_ALL_INPUTS] else tuple(names)


def _of_function(problem: Problem, inputs: Sequence[Array], *numbers: Any) -> Reference | tuple[Reference, ...]:
    """The `reference` of a problem that has a function in its place."""
    from py_backends import bounds

    function, dtype = _plain_function(type(problem)), _dtype_of_run(problem, inputs)
    assert function
    results = problem.array_dtypes(dtype)[len(problem.inputs) :]
    found: Reference | tuple[Reference, ...]
    if problem.tolerance is None:
        sums = problem.sum_dtype(dtype)
        found = bounds.followed(function, *inputs, numbers=numbers, ulps=problem.ulps, sums=sums, results=results)
    else:
        given = problem.tolerance[dtype.name] if isinstance(problem.tolerance, Mapping) else problem.tolerance
        found = bounds.tolerated(function, *inputs, numbers=numbers, tolerance=float(given), results=results)
    return found


def _dtype_of_run(problem: Problem, inputs: Sequence[Array]) -> np.dtype[Any]:
    """That of the inputs that have none of their own."""
    free = [each.dtype for at, each in enumerate(inputs) if problem.own_dtype(at) is None]
    return free[0] if free else np.dtype(problem.dtypes[0])


def _plain_function(problem: type[Problem]) -> Callable[..., Any] | None:
    """A problem's function of arrays alone. It stands in the class as any other function, without `self`."""
    found = inspect.getattr_static(problem, "function")
    plain: Callable[..., Any] | None = found.__func__ if isinstance(found, staticmethod) else found
    return plain


def _with_inputs(reference: Callable[..., Any], count: int) -> Callable[..., Any]:
    """A `reference` as the harness calls it, of one that has a parameter for each of so many inputs."""

    def of_inputs(self: Problem, inputs: Sequence[Array], *numbers: Any, **named: Any) -> Any:
        answer = reference(self, *inputs[:count], *numbers, **named)
        return tuple(map(_judging, answer)) if isinstance(answer, tuple) else _judging(answer)

    return of_inputs


def _judging(answer: Reference | Array) -> Reference:
    return answer if isinstance(answer, Reference) else Reference(np.asarray(answer))


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
