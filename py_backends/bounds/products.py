"""Products, and sums of products: one rule for all functions that are linear in each of their arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from py_backends.bounds import linear
from py_backends.bounds.array import Bounded, Facts, lifted, rule, sizes_of, thin_mask
from py_backends.bounds.precision import product_of_steps
from py_backends.reference import Array


def multilinear(function: Callable[..., Any], *factors: Bounded, terms: Any = None) -> Bounded:
    """A function that adds up products of one element of each factor, each product once.

    Its error is telescoped, so that no term of second order is lost, such as that of both errors:

        x'y' - x y = (x' - x) y' + x (y' - y), whose size is at most e (|y| + f) + |x| f.

    terms: how many products each element is the sum of; None where the function itself counts them.
    """
    closed = [each.closed() for each in factors]
    values, sizes = [each.value for each in closed], [sizes_of(each.value) for each in closed]
    errors = [_error_as_factor(each) for each in closed]
    if terms is None:
        terms = function(*(np.broadcast_to(1.0, each.shape) for each in factors))
    with np.errstate(all="ignore"):
        value, magnitude = np.asarray(function(*values)), np.asarray(function(*sizes))
        error = _telescoped(function, sizes, errors)
        overflow = _spoilt(function, closed, errors)
        if len(factors) > 2:  # whose products of some may overflow, and those of all not
            largest = function(*(np.maximum(size + error, 1.0) for size, error in zip(sizes, errors, strict=True)))
            overflow = thin_mask(overflow | ~(largest <= closed[0].precision.largest))
    losses = terms * (len(factors) - 1) * _largest_product(closed)
    steps = [each.facts.step for each in closed]
    least = math.prod(each.facts.least for each in closed) if all(each.facts.least >= 0 for each in closed) else -1.0
    return Bounded(
        closed[0].precision,
        value,
        error,
        magnitude,
        roundings=len(factors) - 1,
        terms=terms,
        losses=losses,
        overflow=overflow,
        facts=Facts(product_of_steps(closed[0].precision.least, *steps), linear.rounded_down(least)),
    )


def _error_as_factor(x: Bounded) -> Array:
    """Of a closed array; where matrix units take a subnormal number for zero, that number too."""
    if not x.precision.flushes:
        return x.error
    size = np.abs(x.value)
    return np.asarray(np.where(size < x.precision.normal, np.maximum(x.error, size), x.error))


def _telescoped(function: Callable[..., Any], sizes: Sequence[Array], errors: Sequence[Array]) -> Any:
    error: Any = 0.0
    for at, of_factor in enumerate(errors):
        if of_factor.any():
            others = [size + other for size, other in zip(sizes[at + 1 :], errors[at + 1 :], strict=True)]
            whole = np.broadcast_to(of_factor, sizes[at].shape)
            error = error + function(*sizes[:at], whole, *others)
    return np.where(np.isnan(error), np.inf, error)  # infinity times zero


def _spoilt(function: Callable[..., Any], factors: Sequence[Bounded], errors: Sequence[Array]) -> Array:
    """Which results have a factor that may have overflowed, or an infinite one beside one of either sign or zero."""
    spoilt: Any = False
    others = len(factors) - 1  # whose product may be zero by underflow if one of them is as small as this
    underflows = factors[0].precision.normal ** (1 / others) if others > 1 else 0.0
    for at, factor in enumerate(factors):
        ones = [np.broadcast_to(1.0, each.shape) for each in factors]
        if factor.overflow.any():
            ones[at] = np.broadcast_to(factor.overflow, factor.shape).astype(np.float64)
            spoilt = spoilt | (function(*ones) > 0)
        if np.isinf(factor.value).any():
            ones[at] = np.isinf(factor.value).astype(np.float64)
            for other, (each, error) in enumerate(zip(factors, errors, strict=True)):
                if other != at:
                    nearest = np.abs(each.value) - error
                    unsure = np.broadcast_to(((error > 0) & (nearest <= 0)) | (nearest < underflows), each.shape)
                    spoilt = spoilt | (function(*ones[:other], unsure.astype(np.float64), *ones[other + 1 :]) > 0)
    return thin_mask(spoilt)


def _largest_product(factors: Sequence[Bounded]) -> float:
    """What underflow in a product of two may be multiplied by: the largest product of all factors but these."""
    if len(factors) == 2:
        return 1.0
    largest = sorted(max(1.0, float((sizes_of(each.value) + each.error).max(initial=0.0))) for each in factors)
    return math.prod(largest[2:])


@rule(np.multiply)
def multiply(x: Any, y: Any) -> Bounded:
    """Of elements; a single number is a factor of terms, which stay open."""
    same = x is y
    x, y = lifted(x, y)
    if x.ndim == 0 < y.ndim:
        return linear.scaled(y, x)
    if y.ndim == 0 < x.ndim:
        return linear.scaled(x, y)
    product = multilinear(np.multiply, x, y, terms=1.0)
    if same:
        product.facts.least = 0.0
    return product


@rule(np.square)
def square(x: Any) -> Bounded:
    """Never negative, since both factors are one number."""
    return multiply(x, x)


@rule(np.dot)
def _dot(a: Any, b: Any) -> Bounded:
    """Of more than two dimensions, each row of one with each column of the other, which np.matmul does not do."""
    a, b = lifted(a, b)
    if 0 in {a.ndim, b.ndim}:
        return multiply(a, b)
    return multilinear(np.dot, a, b, terms=float(a.shape[-1]))


@rule(np.matmul)
def _matmul(a: Any, b: Any) -> Bounded:
    a, b = lifted(a, b)
    if {a.ndim, b.ndim} <= {1, 2}:  # where both are one product
        return _dot(a, b)
    return multilinear(np.matmul, a, b, terms=float(math.prod(a.shape[-1:])))  # NumPy refuses a single number


@rule(np.vdot)
def _vdot(a: Any, b: Any) -> Bounded:
    a, b = lifted(a, b)
    return multilinear(np.dot, a.reshape(-1), b.reshape(-1), terms=float(a.size))


def _register(function: Any) -> None:
    """For functions of two factors that themselves count their products."""

    def bilinear(a: Any, b: Any, *arguments: Any, **options: Any) -> Bounded:
        a, b = lifted(a, b)
        return multilinear(lambda x, y: function(x, y, *arguments, **options), a, b)

    rule(function)(bilinear)


for _function in (np.inner, np.kron, np.convolve, np.correlate, np.tensordot):
    _register(_function)


@rule(np.outer)
def _outer(a: Any, b: Any) -> Bounded:
    a, b = lifted(a, b)
    return multiply(np.ravel(a)[:, None], np.ravel(b)[None, :])


@rule(np.einsum)
def _einsum(subscripts: str, *operands: Any, optimize: Any = False) -> Bounded:
    factors = lifted(*operands)
    return multilinear(partial(np.einsum, subscripts, optimize=optimize), *factors)


@rule(np.divide)
def divide(x: Any, y: Any) -> Bounded:
    """x'/y' - x/y = ((x' - x) - (x/y) (y' - y)) / y', where |y'| is at least |y| - f. x (1/y) is right too."""
    if isinstance(y, (int, float)):
        return linear.divided(x, y)
    x, y = lifted(x, y)
    divisor = y.closed()
    if y.ndim:
        x = x.closed()
    with np.errstate(all="ignore"):
        size = sizes_of(divisor.value)
        nearest = np.maximum(size - divisor.error, np.where(divisor.facts.least > 0, divisor.facts.least, 0.0))
        unsure = (divisor.error > 0) & ~(nearest > 0)
        infinite = np.isinf(divisor.value)
        quotients = np.where(infinite, 0.0, x.magnitude / size)
        quotients = np.where(np.isfinite(quotients), quotients, 0.0)
        error = np.where(infinite, 0.0, (x.error + quotients * divisor.error) / nearest)
        error = np.where(np.isnan(error) | unsure, np.where(x.error + divisor.error > 0, np.inf, 0.0), error)
        value = x.value / divisor.value
        smallest = np.where(nearest > 0, nearest, 1.0)
        # 1 / y may be infinite, or lose digits to underflow. The sign of a sum that is 0 depends on its order.
        either_sign = (size == 0) & (divisor.value == 0) & ~np.isnan(x.value)
        spoilt = x.overflow | unsure | either_sign | (1 / smallest > x.precision.largest)
        losses = x.losses / smallest + np.maximum(x.terms, 1.0) + x.magnitude + x.error
    error, spoilt = _after_overflow(error, divisor, spoilt)
    positive = x.facts.least >= 0 and y.facts.least >= 0
    return Bounded(
        x.precision,
        value,
        error,
        quotients,
        roundings=x.roundings + x.precision.ulps.get("divide", 1.0) * 2,
        terms=x.terms,
        losses=losses,
        overflow=thin_mask(spoilt),
        facts=Facts(0.0, 0.0 if positive else -math.inf),
    )


def _after_overflow(error: Any, divisor: Bounded, spoilt: Any) -> tuple[Any, Any]:
    """A divisor that is infinite in the kernel alone makes a quotient that is 0 there."""
    if divisor.overflow.any():
        return np.where(divisor.overflow, np.inf, error), spoilt | divisor.overflow
    return error, spoilt


@rule(np.reciprocal)
def _reciprocal(x: Any) -> Bounded:
    return divide(1.0, x)


@rule(np.prod)
def prod(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:  # noqa: ARG001  # float64
    """Of pairs of neighbours, and of their products; each order of multiplications rounds as often."""
    (a,) = lifted(a)
    axes = linear.axes_of(axis, a.ndim)
    found: Any = np.moveaxis(a, axes, range(len(axes)))
    found = np.reshape(found, (math.prod(found.shape[: len(axes)]), *found.shape[len(axes) :]))
    while len(found) > 1:
        products = multiply(found[:-1:2], found[1::2])
        found = np.concatenate([products, found[2 * len(products) :]])
    result = found[0] if len(found) else linear.full_like(a, 1.0, shape=found.shape[1:])
    return np.expand_dims(result, axes) if keepdims else result


@rule(np.multiply, method="reduce")
def _reduce(a: Any, axis: Any = 0, dtype: Any = None, keepdims: bool = False) -> Any:
    """As np.prod, but for the axis by default, which is the first one."""
    return prod(a, axis, dtype, keepdims)
