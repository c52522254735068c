"""Kernels in formats of 16 and 8 bits for test_conformance_formats, in plain NumPy: wrong ones, and unusual right ones.

Each takes inputs and returns a result. The wrong ones are wrong in one respect, as a text may well be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
Kernel = Callable[[Any, Any], Any]
V, M = "vecadd", "matmul"
HALF, BRAIN, BYTE = THREE = "float16", "bfloat16", "int8"
"""Those that these kernels are about. There may be more."""


def wide(array: Any) -> Any:
    return array.astype(np.int32 if array.dtype == np.int8 else np.float32)


def product(a: Any, b: Any) -> Any:
    return wide(a) @ wide(b)


def added(a: Any, b: Any, after: Callable[[Any], Any], every: int = 1) -> Any:
    """Sums that something is done to after so many products."""
    sums = np.zeros((a.shape[0], b.shape[1]), wide(a).dtype)
    for p in range(0, a.shape[1], every):
        sums = after(sums + product(a[:, p : p + every], b[p : p + every]))
    return sums


def halves(array: Any) -> tuple[Any, Any]:
    """Two bfloat16 that together are a float16, as float32; what is not finite has no lower half."""
    high = array.astype(BFLOAT16).astype(np.float32)
    return high, np.where(np.isfinite(high), wide(array) - high, 0).astype(np.float32)


def flushed(array: Any, least: float) -> Any:
    return np.where(np.abs(array) < least, array * array.dtype.type(0), array)


# matmul, wrong


def sums_in_float16(a: Any, b: Any) -> Any:
    return added(a, b, lambda sums: wide(sums.astype(np.float16)))


def sums_in_bfloat16_after_each_tile(a: Any, b: Any) -> Any:
    return added(a, b, lambda sums: wide(sums.astype(BFLOAT16)), every=32)


def sums_of_bytes_in_float32(a: Any, b: Any) -> Any:
    return (a.astype(np.float32) @ b.astype(np.float32)).astype(np.int64).astype(np.int32)


def inputs_rounded_to_bfloat16(a: Any, b: Any) -> Any:
    return product(a.astype(BFLOAT16), b.astype(BFLOAT16))


def inputs_converted_to_float16(a: Any, b: Any) -> Any:
    return product(a.astype(np.float16), b.astype(np.float16))


def result_rounded_to_the_inputs_format(a: Any, b: Any) -> Any:
    return wide(product(a, b).astype(a.dtype))


def drops_the_end_of_k(a: Any, b: Any) -> Any:
    whole = a.shape[1] // 2 * 2
    return product(a[:, :whole], b[:whole])


def pads_one_operand_alone(a: Any, b: Any) -> Any:
    """The end of k is made up with zeros in b, and in a with what the tile before it left: another row's numbers."""
    lacking = -a.shape[1] % 2
    left = np.resize(a[-1:, :lacking], (len(a), lacking))
    return product(np.hstack([a, left]), np.vstack([b, np.zeros((lacking, b.shape[1]), b.dtype)]))


def swaps_a_pair(a: Any, b: Any) -> Any:
    order = np.arange(a.shape[1])
    order[:2] = order[:2][::-1]
    return product(a[:, order], b)


def leaves_out_the_low_half(a: Any, b: Any) -> Any:
    return product(halves(a)[0], wide(b))


def leaves_out_the_low_halves_product(a: Any, b: Any) -> Any:
    (high_a, low_a), (high_b, low_b) = halves(a), halves(b)
    return high_a @ high_b + high_a @ low_b + low_a @ high_b


def flushes_subnormal_float16(a: Any, b: Any) -> Any:
    return product(flushed(a, 2.0**-14), b)


def takes_bytes_for_unsigned(a: Any, b: Any) -> Any:
    return a.view(np.uint8).astype(np.int32) @ wide(b)


def saturates_pairs_at_16_bits(a: Any, b: Any) -> Any:
    pairs = range(0, a.shape[1], 2)
    sums = [np.clip(product(a[:, p : p + 2], b[p : p + 2]), -(2**15), 2**15 - 1) for p in pairs]
    return np.sum(sums, axis=0, dtype=np.int32)


def saturates_at_32_bits(a: Any, b: Any) -> Any:
    exact = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int64)
    return np.clip(exact, -(2**31), 2**31 - 1).astype(np.int32)


# matmul, right


def sums_cut_off(a: Any, b: Any) -> Any:
    """As tensor cores add: towards zero."""
    sums = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for p in range(a.shape[1]):
        exact = sums.astype(np.float64) + np.outer(a[:, p].astype(np.float64), b[p].astype(np.float64))
        sums = exact.astype(np.float32)
        beyond = np.isfinite(exact) & (np.abs(sums.astype(np.float64)) > np.abs(exact))
        sums[beyond] = np.nextafter(sums[beyond], np.float32(0))
    return sums


def flushes_subnormals_as_tiles_do(a: Any, b: Any) -> Any:
    """As the tiles of CPUs add bfloat16: even and odd products apart, without subnormal numbers."""
    normal = 2.0**-126
    a, b = flushed(wide(a), normal), flushed(wide(b), normal)
    return flushed(a[:, ::2] @ b[::2] + a[:, 1::2] @ b[1::2], normal)


def four_products_of_halves(a: Any, b: Any) -> Any:
    (high_a, low_a), (high_b, low_b) = halves(a), halves(b)
    sums = low_a @ low_b + low_a @ high_b + high_a @ low_b + high_a @ high_b
    finite = np.isfinite(a).all(axis=1, keepdims=True) & np.isfinite(b).all(axis=0, keepdims=True)
    return np.where(finite, sums, product(a, b))


# vecadd, wrong


def cuts_results_off(a: Any, b: Any) -> Any:
    exact = wide(a) + wide(b)
    result = exact.astype(a.dtype)
    beyond = np.isfinite(result) & (np.abs(wide(result)) > np.abs(exact))
    result[beyond] = np.nextafter(result[beyond], a.dtype.type(0))
    return result


def rounds_ties_up(a: Any, b: Any) -> Any:
    """bfloat16 by adding half of its last digit, without a look at the digit before."""
    exact = wide(a) + wide(b)
    result = ((exact.view(np.uint32) + 0x8000) >> 16).astype(np.uint16).view(BFLOAT16)
    return np.where(np.isnan(exact), BFLOAT16.type(np.nan), result)


def flushes_subnormal_results(a: Any, b: Any) -> Any:
    result = (wide(a) + wide(b)).astype(a.dtype)
    return flushed(result, float(ml_dtypes.finfo(a.dtype).smallest_normal))


def flushes_subnormal_inputs(a: Any, b: Any) -> Any:
    least = float(ml_dtypes.finfo(a.dtype).smallest_normal)
    return (flushed(wide(a), least) + flushed(wide(b), least)).astype(a.dtype)


def stops_at_the_largest(a: Any, b: Any) -> Any:
    largest = float(ml_dtypes.finfo(a.dtype).max)
    exact = a.astype(np.float64) + b.astype(np.float64)
    return np.where(np.isfinite(exact), np.clip(exact, -largest, largest), exact).astype(a.dtype)


# vecadd, right


def adds_in_float64(a: Any, b: Any) -> Any:
    return (a.astype(np.float64) + b.astype(np.float64)).astype(a.dtype)


FAILS: list[tuple[Kernel, str, tuple[str, ...], set[str]]] = [
    (sums_in_float16, M, (HALF, BRAIN), {"long-sums"}),
    (sums_in_float16, M, (HALF,), {"halves", "depths"}),
    (sums_in_bfloat16_after_each_tile, M, (HALF, BRAIN), {"long-sums", "whole-numbers", "depths"}),
    (sums_of_bytes_in_float32, M, (BYTE,), {"long-sums"}),
    (inputs_rounded_to_bfloat16, M, (HALF,), {"halves", "conversions", "depths", "shapes"}),
    (inputs_converted_to_float16, M, (BRAIN,), {"conversions"}),
    (result_rounded_to_the_inputs_format, M, (HALF, BRAIN), {"long-sums", "depths", "shapes"}),
    (result_rounded_to_the_inputs_format, M, (BYTE,), {"long-sums", "depths", "shapes", "saturation"}),
    (drops_the_end_of_k, M, THREE, {"depths", "shapes", "long-sums"}),
    (pads_one_operand_alone, M, (HALF, BRAIN), {"depths"}),
    (swaps_a_pair, M, THREE, {"whole-numbers", "depths", "shapes"}),
    (leaves_out_the_low_half, M, (HALF,), {"halves", "conversions", "depths"}),
    (leaves_out_the_low_halves_product, M, (HALF,), {"halves"}),
    (flushes_subnormal_float16, M, (HALF,), {"subnormals", "conversions"}),
    (takes_bytes_for_unsigned, M, (BYTE,), {"saturation", "depths", "whole-numbers"}),
    (saturates_pairs_at_16_bits, M, (BYTE,), {"saturation"}),
    (cuts_results_off, V, (HALF, BRAIN), {"every-number", "shapes"}),
    (rounds_ties_up, V, (BRAIN,), {"every-number"}),
    (flushes_subnormal_results, V, (HALF, BRAIN), {"every-number"}),
    (flushes_subnormal_inputs, V, (HALF, BRAIN), {"every-number"}),
    (stops_at_the_largest, V, (HALF, BRAIN), {"every-number"}),
]
"""Kernels with the formats in which a quick run must find them wrong, and the kinds that must."""
HOLDS: list[tuple[Kernel, str, tuple[str, ...]]] = [
    (product, M, THREE),
    (sums_cut_off, M, (HALF, BRAIN)),
    (flushes_subnormals_as_tiles_do, M, (BRAIN,)),
    (four_products_of_halves, M, (HALF,)),
    (adds_in_float64, V, (HALF, BRAIN)),
]
