# Sums in the 16-bit formats, two elements at a time, in LLVM's own language: those that share 32 bits. They are added
# where they lie. Elements that are widened one by one move to other lanes of a register, and back, which costs more
# than adding them. pairs.hpp has the same in C++.

from typing import Any

from llvmlite import ir

from py_backends.backend.formats.numba_cpu import BFLOAT16


def emit_sums_of_pairs(builder: ir.IRBuilder, x: ir.Value, y: ir.Value, element: Any) -> ir.Value:
    """The sums of two vectors of elements, as vectors of 32 bits."""
    words = ir.VectorType(ir.IntType(32), x.type.count // 2)
    x, y = (builder.bitcast(each, words) for each in (x, y))
    half: type[_BFloat16 | _Float16] = _BFloat16 if element == BFLOAT16 else _Float16
    sixteen = _number(x, 16)

    def sums(x: ir.Value, y: ir.Value) -> ir.Value:
        """Of the elements in the upper halves, in the upper halves."""
        return half.narrowed(builder, _added(builder, half.widened(builder, x), half.widened(builder, y)))

    low, high = sums(builder.shl(x, sixteen), builder.shl(y, sixteen)), sums(x, y)
    return builder.or_(builder.lshr(low, sixteen), builder.and_(high, _number(x, 0xFFFF0000)))


class _BFloat16:
    """How an element in the upper half of 32 bits becomes the bits of a float, and those of a sum the upper half.

    What is in the lower half does not matter. NaN stays NaN: CPUs make NaN of a NaN that they add, or one of their own.
    Its first digit is set, so that it does not become infinity. The digits that are dropped are zero, so nothing is
    carried that would change it.
    """

    @staticmethod
    def widened(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
        return builder.and_(x, _number(x, 0xFFFF0000))

    @staticmethod
    def narrowed(builder: ir.IRBuilder, bits: ir.Value) -> ir.Value:
        return _rounded(builder, bits, 16)


class _Float16:
    """The same for float16.

    A float of 2^-112 times the value has the same bits, 13 places further up: its exponent counts from -127, and not
    from -15. So numbers are added without multiplying them first. Subnormal ones are subnormal floats, whose sums are
    exact.
    """

    @staticmethod
    def widened(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
        """Infinity and NaN have the largest exponent in both formats."""
        exponent = _number(x, 0x0F800000)
        bits = builder.and_(builder.ashr(x, _number(x, 3)), _number(x, 0x8FFFE000))
        infinite = builder.icmp_unsigned("==", builder.and_(bits, exponent), exponent)
        return builder.or_(bits, builder.select(infinite, _number(x, 0x7F800000), _number(x, 0)))

    @staticmethod
    def narrowed(builder: ir.IRBuilder, bits: ir.Value) -> ir.Value:
        """Shifted by three places, the digits and the lower part of the exponent are where they belong.

        Finite sums are less than 2^17, so they are positive then. Those that are rounded to 2^16 or more become
        infinity. Infinity and NaN are negative, and stay as they are.
        """
        rounded = _rounded(builder, bits, 13)
        shifted, infinity = builder.shl(rounded, _number(bits, 3)), _number(bits, 0x7C000000)
        magnitude = builder.select(builder.icmp_signed("<", shifted, infinity), shifted, infinity)
        sign = builder.and_(rounded, _number(bits, 0x80000000))
        return builder.or_(builder.and_(magnitude, _number(bits, 0x7FFFFFFF)), sign)


def _rounded(builder: ir.IRBuilder, bits: ir.Value, dropped: int) -> ir.Value:
    """What rounds to nearest, and to the even one of two, once so many digits are dropped."""
    odd = builder.and_(builder.lshr(bits, _number(bits, dropped)), _number(bits, 1))
    return builder.add(builder.add(bits, _number(bits, (1 << dropped - 1) - 1)), odd)


def _added(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """The bits of the sums of floats, from their bits."""
    floats = ir.VectorType(ir.FloatType(), x.type.count)
    return builder.bitcast(builder.fadd(builder.bitcast(x, floats), builder.bitcast(y, floats)), x.type)


def _number(like: ir.Value, number: int) -> ir.Constant:
    return ir.Constant(like.type, [number] * like.type.count)
