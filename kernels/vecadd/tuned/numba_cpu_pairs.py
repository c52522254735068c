# Sums in the 16-bit formats, two elements at a time, in LLVM's own language: those that share 32 bits. They are added
# where they lie. Elements that are widened one by one move to other lanes of a register, and back, which costs more
# than adding them. pairs.hpp has the same in C++.

from typing import Any

from llvmlite import ir

from py_backends.backend._numba_formats import BFLOAT16


def emit_sums_of_pairs(builder: ir.IRBuilder, x: ir.Value, y: ir.Value, element: Any) -> ir.Value:
    """The sums of two vectors of elements, as vectors of 32 bits."""
    words = ir.VectorType(ir.IntType(32), x.type.count // 2)
    x, y = (builder.bitcast(each, words) for each in (x, y))
    emit = _sums_of_bfloat16 if element == BFLOAT16 else _sums_of_float16
    return emit(builder, x, y)


def _sums_of_bfloat16(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    upper = _number(x, 0xFFFF0000)

    def rounded(x: ir.Value, y: ir.Value) -> ir.Value:
        """The sum, with what rounds its upper half.

        CPUs make NaN of a NaN that they add, or one of their own. The lower half of both is zero, so nothing is carried
        that would change NaN.
        """
        bits = _added(builder, x, y)
        odd = builder.and_(builder.lshr(bits, _number(x, 16)), _number(x, 1))
        return builder.add(builder.add(bits, _number(x, 0x7FFF)), odd)

    low = rounded(*(builder.shl(each, _number(x, 16)) for each in (x, y)))
    high = rounded(*(builder.and_(each, upper) for each in (x, y)))
    return builder.or_(builder.lshr(low, _number(x, 16)), builder.and_(high, upper))


def _sums_of_float16(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """The sums of pairs of float16.

    A float of 2^-112 times the value has the same bits, 13 places further up: its exponent counts from -127, and not
    from -15. So numbers are added without multiplying them first. Subnormal ones are subnormal floats, whose sums are
    exact.
    """
    exponent = _number(x, 0x0F800000)

    def widened(x: ir.Value) -> ir.Value:
        """The element in the upper half. Infinity and NaN have the largest exponent in both formats."""
        bits = builder.and_(builder.ashr(x, _number(x, 3)), _number(x, 0x8FFFE000))
        infinite = builder.icmp_unsigned("==", builder.and_(bits, exponent), exponent)
        return builder.or_(bits, builder.select(infinite, _number(x, 0x7F800000), _number(x, 0)))

    def narrowed(bits: ir.Value) -> ir.Value:
        magnitude = builder.and_(bits, _number(x, 0x7FFFFFFF))
        odd = builder.and_(builder.lshr(bits, _number(x, 13)), _number(x, 1))
        nearest = builder.lshr(builder.add(builder.add(magnitude, _number(x, 0xFFF)), odd), _number(x, 13))
        infinity = _number(x, 0x7C00)
        nearest = builder.select(builder.icmp_signed("<", nearest, infinity), nearest, infinity)
        nan = builder.icmp_signed(">", magnitude, _number(x, 0x7F800000))
        nearest = builder.or_(nearest, builder.select(nan, _number(x, 0x200), _number(x, 0)))
        return builder.or_(nearest, builder.and_(builder.lshr(bits, _number(x, 16)), _number(x, 0x8000)))

    low = narrowed(_added(builder, *(widened(builder.shl(each, _number(x, 16))) for each in (x, y))))
    high = narrowed(_added(builder, widened(x), widened(y)))
    return builder.or_(low, builder.shl(high, _number(x, 16)))


def _added(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """The bits of the sums of floats, from their bits."""
    floats = ir.VectorType(ir.FloatType(), x.type.count)
    return builder.bitcast(builder.fadd(builder.bitcast(x, floats), builder.bitcast(y, floats)), x.type)


def _number(like: ir.Value, number: int) -> ir.Constant:
    return ir.Constant(like.type, [number] * like.type.count)
