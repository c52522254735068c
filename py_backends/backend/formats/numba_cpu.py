"""Number formats for sources in Numba, which computes in neither 16-bit format: sources widen, compute and narrow.

A source sees elements of 16 bits as integers, whose types tell the formats apart (`_numba.seen`). The functions here
emit LLVM's language, for scalars and for vectors.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.extending import intrinsic

from py_backends.backend._numba import cpu, seen_dtype

FLOAT16, BFLOAT16 = (from_dtype(seen_dtype(np.dtype(each))) for each in (np.float16, ml_dtypes.bfloat16))
_WORD, _FLOAT = ir.IntType(32), ir.FloatType()


def _converts() -> bool:
    """Whether the CPU that Numba compiles for has instructions for float16. If not, LLVM may call missing functions."""
    triple, features = cpu()
    return triple.startswith(("aarch64", "arm64")) or ("+f16c" in features and "-avx" not in features)


CONVERTS = _converts()


def sum_of(element: Any) -> Any:
    """The type in which elements of a type are computed."""
    return {FLOAT16: types.float32, BFLOAT16: types.float32, types.int8: types.int32}.get(element, element)


def emit_widened(builder: ir.IRBuilder, x: ir.Value, element: Any, converts: bool = CONVERTS) -> ir.Value:
    """An element, or a vector of them, as Sum.

    converts: whether there are instructions for float16.
    """
    if element == FLOAT16 and converts:
        return builder.fpext(builder.bitcast(x, _like(x, ir.HalfType())), _like(x, _FLOAT))
    if element == FLOAT16:
        return _widened_by_integers(builder, x)
    if element == BFLOAT16:
        word = builder.zext(x, _like(x, _WORD))
        return builder.bitcast(builder.shl(word, _number(word, 16)), _like(x, _FLOAT))
    return builder.sext(x, _like(x, _WORD)) if element == types.int8 else x


def emit_narrowed(builder: ir.IRBuilder, x: ir.Value, element: Any, converts: bool = CONVERTS) -> ir.Value:
    """The element nearest to a Sum, or a vector of them. Of two equally near ones it is the even one."""
    if element == FLOAT16 and converts:
        return builder.bitcast(builder.fptrunc(x, _like(x, ir.HalfType())), _like(x, ir.IntType(16)))
    if element not in (FLOAT16, BFLOAT16):
        return x
    bits = (_float16_bits if element == FLOAT16 else _bfloat16_bits)(builder, x)
    return builder.trunc(bits, _like(x, ir.IntType(16)))


def _widened_by_integers(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    # The exponent counts from -15 here and from -127 in a float. Multiplying by 2^112, which is exact, makes up for it.
    word = builder.zext(x, _like(x, _WORD))
    magnitude = builder.and_(word, _number(word, 0x7FFF))
    infinite = builder.icmp_unsigned(">=", magnitude, _number(word, 0x7C00))
    small = builder.bitcast(builder.shl(magnitude, _number(word, 13)), _like(x, _FLOAT))
    wide = builder.bitcast(builder.fmul(small, _number(small, 2.0**112)), word.type)
    wide = builder.or_(wide, builder.select(infinite, _number(word, 0x7F800000), _number(word, 0)))
    sign = builder.shl(builder.and_(word, _number(word, 0x8000)), _number(word, 16))
    return builder.bitcast(builder.or_(wide, sign), small.type)


def _bfloat16_bits(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    word = builder.bitcast(x, _like(x, _WORD))
    odd = builder.and_(builder.lshr(word, _number(word, 16)), _number(word, 1))
    rounded = builder.add(word, builder.add(odd, _number(word, 0x7FFF)))
    quiet = builder.or_(word, _number(word, 0x400000))
    return builder.lshr(builder.select(builder.fcmp_unordered("uno", x, x), quiet, rounded), _number(word, 16))


def _float16_bits(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    word = builder.bitcast(x, _like(x, _WORD))
    sign = builder.and_(builder.lshr(word, _number(word, 16)), _number(word, 0x8000))
    magnitude = builder.and_(word, _number(word, 0x7FFFFFFF))
    # From 2^-14 on, the exponent counts from -15, and 13 digits are rounded off.
    odd = builder.and_(builder.lshr(word, _number(word, 13)), _number(word, 1))
    normal = builder.add(magnitude, builder.add(odd, _number(word, 0xFFF - 0x38000000 & 0xFFFFFFFF)))
    normal = builder.lshr(normal, _number(word, 13))
    # Below, the last digit is 2^-24, as in a float between a half and one, so the addition rounds there.
    half = builder.fadd(builder.bitcast(magnitude, x.type), _number(x, 0.5))
    small = builder.sub(builder.bitcast(half, word.type), _number(word, 0x3F000000))
    nan = builder.fcmp_unordered("uno", x, x)
    large = builder.select(nan, _number(word, 0x7E00), _number(word, 0x7C00))
    is_small = builder.icmp_unsigned("<", magnitude, _number(word, 0x38800000))
    is_normal = builder.icmp_unsigned("<", magnitude, _number(word, 0x47800000))
    return builder.or_(builder.select(is_small, small, builder.select(is_normal, normal, large)), sign)


def _like(x: ir.Value, kind: ir.Type) -> ir.Type:
    """A type, or if a value is a vector, the type of a vector of the same length."""
    return ir.VectorType(kind, x.type.count) if isinstance(x.type, ir.VectorType) else kind


def _number(x: ir.Value, number: float) -> ir.Constant:
    """A number of the type of a value."""
    return ir.Constant(x.type, [number] * x.type.count if isinstance(x.type, ir.VectorType) else number)


def widen_by(converts: bool) -> Any:
    """What `intrinsic` makes `widen` of."""

    def widen(_typing: Any, x: Any) -> Any:
        """An element as Sum."""

        def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return emit_widened(builder, arguments[0], x, converts)

        return sum_of(x)(x), emit

    return widen


def narrow_by(converts: bool) -> Any:
    """What `intrinsic` makes `narrow` of."""

    def narrow(_typing: Any, _x: Any, dtype: Any) -> Any:
        """The element of an array's dtype nearest to a Sum."""

        def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return emit_narrowed(builder, arguments[0], dtype.dtype, converts)

        return dtype.dtype(sum_of(dtype.dtype), dtype), emit

    return narrow


widen, narrow = intrinsic(widen_by(CONVERTS)), intrinsic(narrow_by(CONVERTS))
