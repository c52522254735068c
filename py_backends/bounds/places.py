"""Functions that put elements in other places, and those that are made of other rules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from py_backends.bounds import linear, products
from py_backends.bounds.array import lifted, moved, no_bound, rule

_OF_ONE = (
    *(np.reshape, np.transpose, np.swapaxes, np.moveaxis, np.rollaxis, np.expand_dims, np.squeeze, np.ravel),
    *(np.broadcast_to, np.flip, np.fliplr, np.flipud, np.roll, np.rot90, np.repeat, np.tile, np.take, np.diagonal),
    *(np.diag, np.diagflat, np.triu, np.tril, np.split, np.array_split, np.hsplit, np.vsplit, np.dsplit, np.delete),
    *(np.take_along_axis, np.resize, sliding_window_view),
)
_OF_SEVERAL = (np.concatenate, np.stack, np.hstack, np.vstack, np.dstack, np.column_stack)
_OF_EACH = (np.atleast_1d, np.atleast_2d, np.atleast_3d)


def _register_one(function: Any) -> None:
    def place(a: Any, *arguments: Any, **options: Any) -> Any:
        return moved(lambda field: function(field, *arguments, **options), a)

    rule(function)(place)


def _register_several(function: Any) -> None:
    def place(arrays: Any, *arguments: Any, **options: Any) -> Any:
        return moved(lambda *fields: function(fields, *arguments, **options), *lifted(*arrays))

    rule(function)(place)


def _register_each(function: Any) -> None:
    def place(a: Any) -> Any:
        return moved(function, a)

    rule(function)(place)


for _functions, _register in (
    (_OF_ONE, _register_one),
    (_OF_SEVERAL, _register_several),
    (_OF_EACH, _register_each),
):
    for _function in _functions:
        _register(_function)


@rule(np.pad)
def _pad(array: Any, pad_width: Any, mode: Any = "constant", constant_values: Any = 0) -> Any:
    if mode not in {"constant", "edge", "reflect", "symmetric", "wrap"} or constant_values:
        raise TypeError(no_bound(f"np.pad with mode {mode!r}, or with other constants than 0,"))
    return moved(lambda field: np.pad(field, pad_width, mode), array)


@rule(np.append)
def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    arr, values = lifted(arr, values)
    if axis is None:
        return np.concatenate([np.ravel(arr), np.ravel(values)])
    return np.concatenate([arr, values], axis=axis)


@rule(np.var)
def _var(a: Any, axis: Any = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
    """The mean of squares of the distances from the mean, as NumPy has it, and not that of squares less a square."""
    apart = linear.subtract(a, linear.mean(a, axis, dtype, keepdims=True))
    squares = linear.total(products.square(apart), axis, dtype, keepdims)
    count = a.size // max(1, math.prod(squares.shape))
    return linear.divided(squares, count - ddof)


@rule(np.std)
def _std(a: Any, axis: Any = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
    return np.sqrt(_var(a, axis, dtype, ddof, keepdims))


@rule(np.average)
def _average(a: Any, axis: Any = None, weights: Any = None) -> Any:
    if weights is None:
        return linear.mean(a, axis)
    a, weights = lifted(a, weights)
    if weights.shape != a.shape:
        raise TypeError(no_bound("np.average with weights of another shape"))
    return products.divide(linear.total(products.multiply(a, weights), axis), linear.total(weights, axis))


@rule(np.linalg.norm)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:  # noqa: A002  # NumPy's
    if ord in {1, np.inf} and isinstance(axis, (int, type(None))) and (x.ndim == 1 or axis is not None):
        size = np.abs(x)
        return linear.total(size, axis, keepdims=keepdims) if ord == 1 else np.max(size, axis=axis, keepdims=keepdims)
    if ord not in {None, 2, "fro"} or (ord == 2 and x.ndim > 1 and not isinstance(axis, int)):
        raise TypeError(no_bound(f"np.linalg.norm with ord={ord!r}"))
    return np.sqrt(linear.total(products.square(x), axis, keepdims=keepdims))
