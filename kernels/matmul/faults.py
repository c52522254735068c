"""Wrong answers of matmul, each wrong in one respect, the kinds of trials that must see it, and other right ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from py_backends.conformance.formats import IN_ALL_KINDS, limits
from py_backends.contract import Array

BFLOAT16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
HALF, BRAIN, BYTE = THREE = "float16", "bfloat16", "int8"
"""The narrow formats that these answers are about. There may be more."""


def _wide(array: Array) -> Array:
    """In the format of sums."""
    return array.astype({"float64": np.float64, "int8": np.int32}.get(array.dtype.name, np.float32))


def _product(a: Array, b: Array) -> Array:
    return np.asarray(_wide(a) @ _wide(b))


def _added(a: Array, b: Array, after: Callable[[Array], Array], every: int = 1) -> Array:
    """Sums that something is done to after so many products."""
    sums = np.zeros((a.shape[0], b.shape[1]), _wide(a).dtype)
    for p in range(0, a.shape[1], every):
        sums = after(sums + _product(a[:, p : p + every], b[p : p + every]))
    return sums


def _halves(array: Array) -> tuple[Array, Array]:
    """Two bfloat16 that together are a float16, as float32; what is not finite has no lower half."""
    high = array.astype(BFLOAT16).astype(np.float32)
    return high, np.where(np.isfinite(high), _wide(array) - high, 0).astype(np.float32)


def _below(least: float, array: Array) -> Array:
    """With zeros in place of what is nearer to 0."""
    return np.where(np.abs(array) < least, array * array.dtype.type(0), array)


def _flushed(array: Array) -> Array:
    return _below(limits(array.dtype).normal, array)


# wrong in float32 and float64


def _exchanges_rows(a: Array, b: Array) -> Array:
    return _product(a, np.concatenate([b[:-2], b[-2:][::-1]]))


def _swaps_sizes(a: Array, b: Array) -> Array:
    return np.asarray(np.matmul(a, b).T.reshape(a.shape[0], b.shape[1]))


def _transposes_square_b(a: Array, b: Array) -> Array:
    return _product(a, b.T if b.shape[0] == b.shape[1] else b)


def _leaves_empty_sums(a: Array, b: Array) -> Array:
    """As they were in memory before."""
    return _product(a, b) if a.shape[1] else np.full((a.shape[0], b.shape[1]), np.nan, a.dtype)


def _is_off_by_a_unit(a: Array, b: Array) -> Array:
    c = _product(a, b)
    return np.nextafter(c, np.inf, dtype=c.dtype)


def _rounds_inputs(a: Array, b: Array) -> Array:
    """To TF32, or in float64 to float32."""
    if a.dtype == np.float64:
        return _product(*(x.astype(np.float32).astype(np.float64) for x in (a, b)))
    return _product(*(((x.view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32) for x in (a.copy(), b.copy())))


def _loses_small_sums(a: Array, b: Array) -> Array:
    """As if sums that cancel were kept in half precision."""
    c = _product(a, b)
    c[np.abs(c) < _product(np.abs(a), np.abs(b)) / 2**12] = 0
    return c


def _has_one_exponent(a: Array, b: Array) -> Array:
    """As if an array had one exponent, and a fixed point."""
    if not all(np.isfinite(x).all() and x.size for x in (a, b)):
        return _product(a, b)
    units = [float(np.abs(x).max()) / 2**40 or 1.0 for x in (a, b)]
    fixed = (np.round(x.astype(np.float64) / unit) * unit for x, unit in zip((a, b), units, strict=True))
    return _product(*(x.astype(a.dtype) for x in fixed))


def _overflows_everywhere(a: Array, b: Array) -> Array:
    c = _product(a, b)
    return np.full_like(c, np.inf) if any(np.abs(x).max(initial=0) > 1e38 for x in (a, b)) else c


def _spreads_from_the_edge(a: Array, b: Array) -> Array:
    c = _product(a, b)
    if b.size and not np.isfinite(b[:, -1]).all():
        c[:, -4:] = np.nan
    return c


def _skips_zeros(a: Array, b: Array) -> Array:
    if a.any() and b.any():
        return _product(a, b)
    return _product(*(np.nan_to_num(x, posinf=0, neginf=0) for x in (a, b)))


def _forgets_earlier_passes(a: Array, b: Array) -> Array:
    return _product(a[:, -1800:], b[-1800:])


# wrong in narrower formats


def _sums_of_bytes_in_float32(a: Array, b: Array) -> Array:
    return (a.astype(np.float32) @ b.astype(np.float32)).astype(np.int64).astype(np.int32)


def _rounds_the_result(a: Array, b: Array) -> Array:
    return _wide(_product(a, b).astype(a.dtype))


def _drops_the_end_of_k(a: Array, b: Array) -> Array:
    whole = a.shape[1] // 2 * 2
    return _product(a[:, :whole], b[:whole])


def _pads_one_operand_alone(a: Array, b: Array) -> Array:
    """The end of k is made up with zeros in b, and in a with what the tile before it left: another row's numbers."""
    lacking = -a.shape[1] % 2
    left = np.resize(a[-1:, :lacking], (len(a), lacking))
    return _product(np.hstack([a, left]), np.vstack([b, np.zeros((lacking, b.shape[1]), b.dtype)]))


def _swaps_a_pair(a: Array, b: Array) -> Array:
    order = np.arange(a.shape[1])
    order[:2] = order[:2][::-1]
    return _product(a[:, order], b)


def _leaves_out_the_low_half(a: Array, b: Array) -> Array:
    return np.asarray(_halves(a)[0] @ _wide(b))


def _leaves_out_the_low_halves_product(a: Array, b: Array) -> Array:
    (high_a, low_a), (high_b, low_b) = _halves(a), _halves(b)
    return np.asarray(high_a @ high_b + high_a @ low_b + low_a @ high_b)


def _takes_bytes_for_unsigned(a: Array, b: Array) -> Array:
    return np.asarray(a.view(np.uint8).astype(np.int32) @ _wide(b))


def _saturates_pairs_at_16_bits(a: Array, b: Array) -> Array:
    pairs = range(0, a.shape[1], 2)
    sums = [np.clip(_product(a[:, p : p + 2], b[p : p + 2]), -(2**15), 2**15 - 1) for p in pairs]
    return np.asarray(np.sum(sums, axis=0, dtype=np.int32))


def _saturates_at_32_bits(a: Array, b: Array) -> Array:
    exact = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int64)
    return np.clip(exact, -(2**31), 2**31 - 1).astype(np.int32)


# right


def _sums_cut_off(a: Array, b: Array) -> Array:
    """As tensor cores add: towards zero."""
    sums = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for p in range(a.shape[1]):
        exact = sums.astype(np.float64) + np.outer(a[:, p].astype(np.float64), b[p].astype(np.float64))
        sums = exact.astype(np.float32)
        beyond = np.isfinite(exact) & (np.abs(sums.astype(np.float64)) > np.abs(exact))
        sums[beyond] = np.nextafter(sums[beyond], np.float32(0))
    return sums


def _flushes_subnormals_as_tiles_do(a: Array, b: Array) -> Array:
    """As the tiles of CPUs add bfloat16: even and odd products apart, without subnormal numbers."""
    normal = 2.0**-126
    a, b = _below(normal, _wide(a)), _below(normal, _wide(b))
    return _below(normal, a[:, ::2] @ b[::2] + a[:, 1::2] @ b[1::2])


def _four_products_of_halves(a: Array, b: Array) -> Array:
    (high_a, low_a), (high_b, low_b) = _halves(a), _halves(b)
    sums = low_a @ low_b + low_a @ high_b + high_a @ low_b + high_a @ high_b
    finite = np.isfinite(a).all(axis=1, keepdims=True) & np.isfinite(b).all(axis=0, keepdims=True)
    return np.where(finite, sums, _product(a, b))


Answer = Callable[[Array, Array], Array]
RIGHT: dict[str, tuple[Answer, tuple[str, ...]]] = {
    "multiplies in the format of sums": (_product, (*IN_ALL_KINDS, *THREE)),
    "cuts sums off": (_sums_cut_off, (HALF, BRAIN)),
    "flushes subnormal numbers as tiles do": (_flushes_subnormals_as_tiles_do, (BRAIN,)),
    "adds four products of halves": (_four_products_of_halves, (HALF,)),
}
FAULTS: dict[str, tuple[Answer, tuple[str, ...], set[str]]] = {
    "two rows of b are exchanged": (_exchanges_rows, IN_ALL_KINDS, {"indices", "permutations"}),
    "sizes are exchanged": (_swaps_sizes, IN_ALL_KINDS, {"shapes"}),
    "a square b is transposed": (_transposes_square_b, IN_ALL_KINDS, {"asymmetric"}),
    "empty sums are left": (_leaves_empty_sums, IN_ALL_KINDS, {"nothing", "shapes"}),
    "results are off by a unit": (_is_off_by_a_unit, IN_ALL_KINDS, {"whole-numbers", "indices"}),
    "inputs are rounded": (_rounds_inputs, IN_ALL_KINDS, {"precision"}),
    "small sums are lost": (_loses_small_sums, IN_ALL_KINDS, {"cancellation"}),
    "an array has one exponent": (_has_one_exponent, IN_ALL_KINDS, {"scales"}),
    "infinity is everywhere": (_overflows_everywhere, ("float32",), {"overflow"}),
    "what is not finite spreads": (_spreads_from_the_edge, IN_ALL_KINDS, {"not-finite-at-the-edge"}),
    "zeros are skipped": (_skips_zeros, IN_ALL_KINDS, {"zero-times-not-finite"}),
    "subnormal inputs and results are flushed": (
        lambda a, b: _flushed(_product(_flushed(a), _flushed(b))),
        IN_ALL_KINDS,
        {"subnormals"},
    ),
    "earlier passes are forgotten": (_forgets_earlier_passes, IN_ALL_KINDS, {"several-passes"}),
    "sums are in float16": (
        lambda a, b: _added(a, b, lambda sums: _wide(sums.astype(np.float16))),
        (HALF, BRAIN),
        {"long-sums", "halves"},
    ),
    "sums are rounded to bfloat16 after each tile": (
        lambda a, b: _added(a, b, lambda sums: _wide(sums.astype(BFLOAT16)), every=32),
        (HALF, BRAIN),
        {"long-sums", "whole-numbers", "depths"},
    ),
    "sums of bytes are in float32": (_sums_of_bytes_in_float32, (BYTE,), {"long-sums"}),
    "inputs are rounded to bfloat16": (
        lambda a, b: _product(a.astype(BFLOAT16), b.astype(BFLOAT16)),
        (HALF,),
        {"halves", "conversions", "depths", "shapes"},
    ),
    "inputs are converted to float16": (
        lambda a, b: _product(a.astype(np.float16), b.astype(np.float16)),
        (BRAIN,),
        {"conversions"},
    ),
    "results are rounded to the inputs' format": (
        _rounds_the_result,
        THREE,
        {"long-sums", "depths", "shapes", "saturation"},
    ),
    "the end of k is dropped": (_drops_the_end_of_k, THREE, {"depths", "shapes", "long-sums"}),
    "one operand alone is padded": (_pads_one_operand_alone, (HALF, BRAIN), {"depths"}),
    "a pair is swapped": (_swaps_a_pair, THREE, {"whole-numbers", "depths", "shapes"}),
    "the low half is left out": (_leaves_out_the_low_half, (HALF,), {"halves", "conversions", "depths"}),
    "the product of low halves is left out": (_leaves_out_the_low_halves_product, (HALF,), {"halves"}),
    "subnormal numbers of 16 bits are flushed": (
        lambda a, b: _product(_flushed(a), b),
        (HALF,),
        {"subnormals", "conversions"},
    ),
    "bytes are taken for unsigned": (
        _takes_bytes_for_unsigned,
        (BYTE,),
        {"saturation", "depths", "whole-numbers"},
    ),
    "pairs stop at 16 bits": (_saturates_pairs_at_16_bits, (BYTE,), {"saturation"}),
    "sums stop at 32 bits": (_saturates_at_32_bits, (BYTE,), {"saturation"}),
}
