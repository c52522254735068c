"""A simulated machine that runs programs of NumPy as a kernel might: every result is rounded up or down at random.

Sums are kept as terms until something other than a sum needs them. Then they are added in a random order, products
fused or not, and factors that are the same for all elements before or after. A result has 25 digits, which is one more
than a float32 has: an error is below 2^-24 of it, whichever way it is rounded, and what fits into 24 digits is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

LARGEST = float(np.finfo(np.float32).max)


class Chance:
    """Random decisions."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator

    def __bool__(self) -> bool:
        return bool(self.generator.random() < 0.5)

    def rounded(self, values: Any) -> Any:
        values = np.asarray(values)
        _, exponents = np.frexp(np.where(np.isfinite(values), values, 0.0))
        unit = np.ldexp(1.0, np.maximum(exponents - 25, -149))
        whole = values / unit
        up = self.generator.random(values.shape) < 0.5
        found = np.where(up, np.ceil(whole), np.floor(whole)) * unit
        found = np.where(np.isfinite(values), found, values)
        return np.where(np.abs(found) > LARGEST, np.copysign(np.inf, found), found)

    def off(self, values: Any, roundings: float) -> Any:
        """Off by up to so many roundings, the last of which is this machine's."""
        relative = (roundings - 1) * 2.0**-24 * self.generator.uniform(-1, 1, np.shape(values))
        return self.rounded(values * (1 + relative))


class Simulated(NDArrayOperatorsMixin):
    """Terms to be added, and whether each is a product that is not yet rounded."""

    def __init__(self, chance: Chance, terms: list[tuple[Any, bool]]) -> None:
        self.chance, self.terms = chance, terms

    @classmethod
    def of(cls, chance: Chance, value: Any) -> Simulated:
        return cls(chance, [(np.asarray(value, np.float64), False)])

    @property
    def shape(self) -> Any:
        return np.broadcast_shapes(*[term.shape for term, _ in self.terms])

    def close(self) -> Any:
        parts = [(np.broadcast_to(term, self.shape), product) for term, product in self.terms]
        while len(parts) > 1:
            one, other = (parts.pop(self.chance.generator.integers(len(parts))) for _ in range(2))
            added = self.fused(one) + self.rounded(other)
            parts.append((self.chance.rounded(added), False))
        self.terms = [(self.rounded(parts[0]), False)]
        return self.terms[0][0]

    def rounded(self, part: tuple[Any, bool]) -> Any:
        return self.chance.rounded(part[0]) if part[1] else part[0]

    def fused(self, part: tuple[Any, bool]) -> Any:
        return part[0] if self.chance else self.rounded(part)

    def lift(self, other: Any) -> Simulated:
        if isinstance(other, Simulated):
            return other
        return Simulated.of(self.chance, self.chance.rounded(other))

    def each(self, function: Any) -> Simulated:
        """A function of each term that moves elements."""
        return Simulated(self.chance, [(function(np.broadcast_to(term, self.shape)), p) for term, p in self.terms])

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = (), **options: Any) -> Any:
        if method == "accumulate":  # of the larger or smaller one, which rounds nothing
            result: Any = self.result(ufunc.accumulate(self.close(), *inputs[1:], **options))
        elif method != "__call__":
            result = {"reduce": summed, "reduceat": summed_parts}[method](*inputs, **options)
        else:
            result = self.called(ufunc, [self.lift(each) for each in inputs])
        if out:
            out[0].terms = result.terms
            return out[0]
        return result

    def called(self, ufunc: Any, operands: list[Simulated]) -> Any:
        x, y = operands if len(operands) == 2 else (operands[0], None)
        if ufunc is np.add:
            return Simulated(self.chance, [*x.terms, *y.terms])
        if ufunc is np.subtract:
            return Simulated(self.chance, [*x.terms, *y.each(np.negative).terms])
        if ufunc is np.negative:
            return x.each(np.negative)
        if ufunc in {np.multiply, np.matmul}:
            return product(ufunc, x, y)
        return self.function(ufunc, [each.close() for each in operands])

    def function(self, ufunc: Any, values: list[Any]) -> Any:
        """Of numbers, which gives one number, or an answer."""
        if ufunc is np.divide:
            x, y = values
            reciprocal = self.chance.rounded(1 / y)
            return self.result(self.chance.rounded(x * reciprocal if self.chance else x / y))
        found = ufunc(*values)
        if found.dtype == bool:
            return found
        if ufunc in ROUNDED:
            found = self.chance.off(found, ROUNDED[ufunc])
        return self.result(found)

    def result(self, value: Any) -> Simulated:
        return Simulated.of(self.chance, value)

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        if function in FUNCTIONS:
            return FUNCTIONS[function](*inputs, **options)
        if function in CLOSING:
            values = [each.close() if isinstance(each, Simulated) else each for each in inputs]
            return self.result(function(*values, **options))
        return self.each(lambda term: function(term, *inputs[1:], **options))

    def __getitem__(self, index: Any) -> Simulated:
        return self.each(lambda term: term[index])

    def __setitem__(self, index: Any, value: Any) -> None:
        whole = np.array(self.close())
        whole[index] = self.lift(value).close()
        self.terms = [(whole, False)]

    def sum(self, axis: int, keepdims: bool = False) -> Simulated:
        return summed(self, axis, keepdims=keepdims)

    def mean(self, axis: int, keepdims: bool = False) -> Simulated:
        return FUNCTIONS[np.mean](self, axis, keepdims)

    def max(self, axis: int, keepdims: bool = False) -> Simulated:
        return self.result(self.close().max(axis, keepdims=keepdims))

    @property
    def T(self) -> Simulated:  # noqa: N802
        return self.each(np.transpose)

    def copy(self) -> Simulated:
        return self.result(self.close())


ROUNDED = {np.exp: 4, np.log: 6, np.sqrt: 6, np.tanh: 6, np.sin: 8, np.hypot: 8, np.expm1: 6, np.log1p: 4}
"""Roundings of functions; the others are exact."""
CLOSING = {np.sort, np.where, np.max, np.min, np.clip}


def product(ufunc: Any, x: Simulated, y: Simulated) -> Simulated:
    chance = x.chance
    if ufunc is np.matmul:
        a, b = x.close(), y.close()
        return Simulated(chance, [(a[:, [p]] * b[[p], :], True) for p in range(a.shape[1])])
    for one, factor in ((x, y), (y, x)):
        if factor.shape == () != one.shape and chance:  # each term times the factor
            number = factor.close()
            return Simulated(chance, [(one.rounded(part) * number, True) for part in one.terms])
    return Simulated(chance, [(x.close() * y.close(), True)])


def slices(term: Any, axis: int, keepdims: bool) -> list[Any]:
    return [term.take([at] if keepdims else at, axis) for at in range(term.shape[axis])]


def summed(a: Simulated, axis: int = 0, keepdims: bool = False) -> Simulated:
    terms = [(np.broadcast_to(term, a.shape), is_product) for term, is_product in a.terms]
    parts = [(part, is_product) for term, is_product in terms for part in slices(term, axis, keepdims)]
    return Simulated(a.chance, parts)


def summed_parts(a: Simulated, indices: Any, axis: int = 0) -> Simulated:
    ends = [*indices[1:], a.shape[axis]]
    parts = [summed(a[begin:end], 0, True).close() for begin, end in zip(indices, ends, strict=True)]
    return a.result(np.concatenate(parts))


def running(a: Simulated, axis: int = 0) -> Simulated:
    terms = []
    for term, is_product in a.terms:
        whole = np.broadcast_to(term, a.shape)
        for at in range(a.shape[axis]):
            reached = np.zeros(a.shape)
            reached[(slice(None),) * axis + (slice(at, None),)] = whole.take([at], axis)
            terms.append((reached, is_product))
    return Simulated(a.chance, terms)


def mean(a: Simulated, axis: int = 0, keepdims: bool = False) -> Simulated:
    return a.result((summed(a, axis, keepdims) / a.shape[axis]).close())


def concatenated(arrays: Any, axis: int = 0) -> Simulated:
    return arrays[0].result(np.concatenate([each.close() for each in arrays], axis))


def rows_times_rows(_: str, a: Any, b: Any) -> Simulated:
    return summed(product(np.multiply, a, b), 1, False)


FUNCTIONS: dict[Any, Any] = {
    np.sum: summed,
    np.cumsum: running,
    np.mean: mean,
    np.concatenate: concatenated,
    np.einsum: rows_times_rows,
    np.zeros_like: lambda a: a.result(np.zeros(a.shape)),
}
