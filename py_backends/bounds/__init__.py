"""Bounds by themselves: what a plain NumPy function computes, and how far from it any right kernel may be.

    bounded(lambda a, b: a @ b, a, b)        # a Reference: value, bound, overflow

The function runs on arrays that carry their own error (`py_backends.bounds.array` says how). Its bound holds for any
order of its sums, fused or not, of a kernel in the format of its inputs. Sums are those that the function writes as
such: +, -, np.sum, np.cumsum, matrix products, np.einsum, `total += ...`; an assignment to elements closes a sum.
So a step of a simulation ends where its result is assigned, and a loop over single elements has their order alone.

A bound is of no use where the function's own numbers cancel: FFT, Strassen's products, E[x^2] - mean^2, solvers,
chaotic loops. Then it is refused, infinite or wide, and says so. `Problem.tolerance` takes its place.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from py_backends.bounds import choices, functions, linear, places, powers, products
from py_backends.bounds.array import Bounded, Facts, carried, lifted
from py_backends.bounds.precision import Precision
from py_backends.bounds.result import judged
from py_backends.reference import Array, Reference, remark_of_width

__all__ = ["bounded", "by_tolerance", "stored", "tolerated", "within"]

_RULES = (choices, functions, linear, places, powers, products)
"""The modules whose import tells what each function of NumPy does."""


def bounded(
    function: Callable[..., Any],
    *inputs: Array,
    numbers: Sequence[int | float] = (),
    ulps: Mapping[str, float] = MappingProxyType({}),
    probable: bool = False,
    sums: Any = None,
    results: Sequence[Any] | None = None,
) -> Reference | tuple[Reference, ...]:
    """The right answer of a function of NumPy, and the bound for kernels in the format of its arithmetic.

    function: of the inputs and then the numbers, in plain NumPy. Arrays of real numbers come as float64 would, with
        their errors; arrays of whole numbers as they are. Where all inputs are whole numbers, it runs in 64 bits, and
        its results are exact modulo 2^32, or what their format has.
    numbers: behind the inputs; real ones exactly as the kernel has them.
    ulps: by NumPy's names of functions, the error of a library that is larger than usual. The usual ones stand in
        `py_backends.bounds.functions`; `divide` has 1.
    probable: take errors of sums to be independent, with the mean zero: 6 sqrt(n) of them in place of n. For random
        inputs, most probably (Higham and Mary, SIAM J. Sci. Comput. 41, 2019).
    sums: the dtype of the arithmetic. None: the widest of the real inputs and of the real results, as in NumPy. So a
        kernel that computes in float32 what one input, or a result, has in float64 is wrong.
    results: the dtypes of the results, where they are not that of the arithmetic.

    Gives a Reference, or a tuple of them where the function gives several arrays. Warns where a bound is so wide that
    it judges little. Raises TypeError, in one line, that names the function of NumPy that has no bound, or the branch
    that rounding decides.
    """
    found = followed(function, *inputs, numbers=numbers, ulps=ulps, probable=probable, sums=sums, results=results)
    for reference in found if isinstance(found, tuple) else (found,):
        if remark := remark_of_width(reference.width):
            warnings.warn(remark, stacklevel=2)
    return found


def followed(
    function: Callable[..., Any],
    *inputs: Array,
    numbers: Sequence[int | float],
    ulps: Mapping[str, float],
    probable: bool = False,
    sums: Any,
    results: Sequence[Any] | None,
) -> Reference | tuple[Reference, ...]:
    """The same without a warning: of special values, any bound is wide."""
    real = [each for each in inputs if _is_real(each)]
    if not real:
        return _several(function(*(each.astype(np.int64) for each in inputs), *numbers), _whole, results)
    of_inputs = min((each.dtype for each in real), key=lambda dtype: dtype.itemsize)
    arithmetic = _widest(each.dtype for each in real) if sums is None else np.dtype(sums)
    if sums is None and results:
        arithmetic = _widest([arithmetic, *(each for each in map(np.dtype, results) if each.kind not in "iub")])
    precision = Precision.of(of_inputs, arithmetic, probable=probable, ulps=ulps)
    answer = traced(function, inputs, numbers, precision)
    return _several(answer, lambda array, dtype: _judged(array, dtype, precision), results)


def traced(function: Callable[..., Any], inputs: Sequence[Array], numbers: Sequence[Any], precision: Precision) -> Any:
    """What a function gives for arrays that carry their errors."""
    arrays = [carried(each, precision) if _is_real(each) else each for each in inputs]
    exact = [carried(np.asarray(each), precision) if isinstance(each, float) else each for each in numbers]
    with np.errstate(all="ignore"):
        try:
            return function(*arrays, *exact)
        except ValueError as error:  # NumPy's, where one is assigned to an element of an array without bounds
            if isinstance(error.__cause__, TypeError):
                raise error.__cause__ from None
            raise


def within(x: Any, low: float, high: float) -> Any:
    """A fact from the user: no right kernel has elements below `low` or above `high`. Without a bound, `x` itself.

    Softmax needs it, since rounding of huge scores alone could make weights of any size:
    `within(np.exp(s - s.max()), 0, 1)`.
    """
    if not isinstance(x, Bounded):
        return x
    closed = x.closed()
    least = max(closed.facts.least, float(low)) if low >= 0 else closed.facts.least
    with np.errstate(all="ignore"):
        widest = np.maximum(np.maximum(closed.value - low, high - closed.value), 0)
        error = np.where(np.isfinite(closed.value), np.minimum(closed.error, widest), 0)
    facts = Facts(closed.facts.step, least)
    overflow = closed.overflow if not np.isfinite(high) else False
    return Bounded(x.precision, closed.value, error, overflow=overflow, facts=facts)


def stored(x: Any) -> Any:
    """A fact from the user: a kernel may store these numbers in the format of its inputs, which rounds them once more.

    So matrix units need the weights of attention, where inputs have 16 bits. Without a bound, `x` itself.
    """
    if not isinstance(x, Bounded) or not x.precision.of_storage:
        return x
    closed, (roundoff, least) = x.closed(), x.precision.of_storage
    error = closed.error + roundoff * (np.abs(closed.value) + closed.error) + least
    return Bounded(
        x.precision, closed.value, error, overflow=closed.overflow, facts=Facts(0.0, min(closed.facts.least, 0))
    )


def tolerated(
    function: Callable[..., Any], *inputs: Array, numbers: Sequence[Any], tolerance: float, results: Sequence[Any]
) -> Reference | tuple[Reference, ...]:
    """The right answer of a function of NumPy in float64, with a bound relative to each output's largest element."""
    with np.errstate(all="ignore"):
        answer = function(*(each.astype(np.float64) if _is_real(each) else each for each in inputs), *numbers)

    def make(array: Any, dtype: Any) -> Reference:
        value = np.asarray(array)
        if np.dtype(dtype).kind in "iub":
            return Reference(value.astype(dtype))
        with np.errstate(over="ignore"):  # an element that no result can hold is no measure for others
            sizes = np.abs(value.astype(dtype).astype(np.float64))
            found = by_tolerance(value, tolerance, sizes)
            largest = (np.abs(found.value) + found.bound).astype(dtype).astype(np.float64)
        return replace(found, overflow=np.isinf(largest) & np.isfinite(found.value))

    return _several(answer, make, results)


def by_tolerance(value: Array, tolerance: float, sizes: Array | None = None) -> Reference:
    """A value with a bound relative to its largest element that is finite.

    sizes: of the elements, where they are not those of the numbers: those of complex ones, which are two numbers each.
    """
    wide = value.astype(np.float64)
    found = np.abs(wide) if sizes is None else sizes
    return Reference(wide, np.full(wide.shape, tolerance * found[np.isfinite(found)].max(initial=0.0)))


def _widest(dtypes: Iterable[np.dtype[Any]]) -> np.dtype[Any]:
    """That in which NumPy computes with numbers of all of these; bfloat16 beside another one counts as float32."""
    first, *others = set(dtypes)
    return np.result_type(*(np.float32 if each.kind == "V" else each for each in (first, *others))) if others else first


def _is_real(array: Array) -> bool:
    return array.dtype.kind not in "iub"


def _several(
    answer: Any, make: Callable[[Any, Any], Reference], results: Sequence[Any] | None
) -> Reference | tuple[Reference, ...]:
    outputs = answer if isinstance(answer, tuple) else (answer,)
    dtypes = results or (None,) * len(outputs)
    found = tuple(make(each, dtype) for each, dtype in zip(outputs, dtypes, strict=False))
    if len(dtypes) != len(outputs):
        raise TypeError(f"the function gives {len(outputs)} arrays, where there are {len(dtypes)} results")
    return found if isinstance(answer, tuple) else found[0]


def _whole(array: Any, dtype: Any) -> Reference:
    """Results of whole numbers, modulo what their format has: additions and products may be done modulo that."""
    array = np.asarray(array)
    if array.dtype.kind not in "iub":
        raise TypeError("real numbers made of whole ones have no bound here: give the Problem a tolerance in its place")
    return Reference(array.astype(np.int32 if dtype is None else dtype))


def _judged(array: Any, dtype: Any, precision: Precision) -> Reference:
    if not isinstance(array, (Bounded, choices.Undecided)):
        found = np.asarray(array)
        if found.dtype.kind in "iub":
            return Reference(found if dtype is None else found.astype(dtype))
        array = lifted(Bounded(precision, 0.0), found)[1]
    if isinstance(array, choices.Undecided):
        raise array.refused()
    if dtype is not None and np.dtype(dtype).kind in "iub":
        return Reference(array.astype(dtype))
    return judged(array, np.dtype(dtype or precision.dtype))
