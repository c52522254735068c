# The instructions of numba_cpu_amx.py, in LLVM's own language: those of AMX, and those of vectors that are packed into
# tiles or written to c. Each is a function that compiled Python calls.
#
# A step of a panel is two tiles, beside or below each other. Where elements have two parts, the tiles of one part stand
# before those of the other. Arrays are flat to these functions: places in them count elements.

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from py_backends.backend.formats.numba_cpu import FLOAT16, emit_widened

from .numba_cpu import write_sums

ROWS, BYTES = 16, 64
"""Rows of a tile, and bytes of a row of it. These are 16 words."""
TILE = ROWS * BYTES // 4
"""Words of a tile."""
SIDE = 2 * ROWS
"""Rows of a, or columns of b, in a panel of two tiles."""
A, B = (4, 5), (6, 7)
"""The tiles of a, and those of b. Tiles 0 to 3 are those of c, by rows."""
WORD, INDEX = ir.IntType(32), ir.IntType(64)


def emit(builder: Any, name: str, *arguments: Any) -> None:
    """Call one of LLVM's functions for tiles. They may read and write any memory, so nothing is moved across them.

    A tile is an `int`: instructions have its number in them.
    """
    arguments = tuple(ir.Constant(ir.IntType(8), each) if isinstance(each, int) else each for each in arguments)
    of_llvm = ir.FunctionType(ir.VoidType(), [each.type for each in arguments])
    builder.call(cgutils.get_or_insert_function(builder.module, of_llvm, f"llvm.x86.{name}"), arguments)


def emit_place(context: Any, builder: Any, kind: Any, array: Any, index: Any, by: Any) -> Any:
    """The address of an element of an array of a type, as that of a `by`."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), ir.PointerType(by))


def plus(builder: Any, index: Any, distance: int) -> Any:
    return builder.add(index, ir.Constant(index.type, distance))


def parts(element: Any) -> int:
    """How many tiles hold an element, each a part of it, so that it is their sum."""
    return 2 if element == FLOAT16 else 1


def emit_part(builder: Any, x: Any, element: Any, which: int) -> Any:
    """A part of each element of a vector, as the integer that stands in a tile.

    Of a float16: the first eight binary digits, or the three that are left. Neither part is subnormal in bfloat16,
    which has more exponents.
    """
    if parts(element) == 1:
        return x
    whole = emit_widened(builder, x, element)
    words = ir.VectorType(WORD, x.type.count)
    high = builder.and_(builder.bitcast(whole, words), ir.Constant(words, [0xFFFF0000] * x.type.count))
    if which == 1:
        high = builder.bitcast(builder.fsub(whole, builder.bitcast(high, whole.type)), words)
    return builder.trunc(builder.lshr(high, ir.Constant(words, [16] * x.type.count)), x.type)


@intrinsic
def words_of_step(typing, array):
    """The words of a step of a panel: two tiles, or those of one part and then of the other."""
    number = 2 * TILE * parts(array.dtype)
    return types.intp(array), lambda context, *_: context.get_constant(types.intp, number)


@intrinsic
def configure_tiles(typing):
    """Make all tiles of this thread 16 rows of 64 bytes."""

    def emitted(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows, bytes_of_rows = [ROWS] * 8 + [0] * 8, ([BYTES, 0] * 8) + [0] * 16
        configuration = bytearray([1, *[0] * 15, *bytes_of_rows, *rows])  # begins with the palette
        constant = cgutils.make_bytearray(configuration)
        place = cgutils.global_constant(builder, "configuration_of_tiles", constant)
        emit(builder, "ldtilecfg", builder.bitcast(place, cgutils.voidptr_t))
        return context.get_dummy_value()

    return types.void(), emitted


@intrinsic
def release_tiles(typing):
    def emitted(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit(builder, "tilerelease")
        return context.get_dummy_value()

    return types.void(), emitted


@intrinsic
def zero_tiles(typing):
    """Begin four tiles of c."""

    def emitted(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        for tile in range(4):
            emit(builder, "tilezero", tile)
        return context.get_dummy_value()

    return types.void(), emitted


@intrinsic
def multiply_step(typing, a, b, at, step):
    """Multiply a step of a panel of a by that of a panel of b, which begins at the word `at`, into the tiles of c."""

    def emitted(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        of_a, of_b, *_ = signature.args
        size = 4 * 2 * TILE * parts(of_a.dtype)
        byte, row = ir.IntType(8), ir.Constant(INDEX, BYTES)
        begin = ir.Constant(arguments[3].type, 0)
        place = builder.mul(arguments[3], ir.Constant(arguments[3].type, size))
        from_a = builder.gep(emit_place(context, builder, of_a, arguments[0], begin, byte), [place])
        from_b = builder.gep(emit_place(context, builder, of_b, arguments[1], arguments[2], byte), [place])

        def load(how: str, tiles: tuple[int, int], begin: Any, which: int) -> None:
            for each, tile in enumerate(tiles):
                distance = ir.Constant(INDEX, 4 * TILE * (2 * which + each))
                emit(builder, how, tile, builder.gep(begin, [distance]), row)

        def multiply() -> None:
            for c in range(4):
                emit(builder, "tdpbssd" if of_a.dtype == types.int8 else "tdpbf16ps", c, A[c // 2], B[c % 2])

        def load_a(which: int) -> None:
            load("tileloadd64", A, from_a, which)

        def load_b(which: int) -> None:
            load("tileloaddt164", B, from_b, which)  # past the first-level cache, where a panel of a is to stay

        load_a(0)
        load_b(0)
        multiply()
        if parts(of_a.dtype) == 2:
            load_b(1)
            multiply()
            load_a(1)
            multiply()
            load_b(0)
            multiply()
        return context.get_dummy_value()

    return types.void(a, b, types.intp, types.intp), emitted


@intrinsic
def store_tiles(typing, buffer):
    """Write the tiles of c to the buffer, as 32 rows of 32 sums."""

    def emitted(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        for tile in range(4):
            first = ir.Constant(INDEX, tile // 2 * ROWS * SIDE + tile % 2 * ROWS)
            place = emit_place(context, builder, signature.args[0], arguments[0], first, ir.IntType(8))
            emit(builder, "tilestored64", tile, place, ir.Constant(INDEX, SIDE * 4))
        return context.get_dummy_value()

    return types.void(buffer), emitted


@intrinsic
def pack_row(typing, a, at, panel, to):
    """Pack the elements that fill a row of a tile, from the element `at` of a to the element `to` of a panel."""

    def emitted(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, at, packed, to = arguments
        element, size = signature.args[0].dtype, signature.args[0].dtype.bitwidth // 8
        row = ir.VectorType(ir.IntType(8 * size), BYTES // size)
        x = builder.load(emit_place(context, builder, signature.args[0], array, at, row), align=size)
        for which in range(parts(element)):
            distant = plus(builder, to, which * SIDE * BYTES // size)
            place = emit_place(context, builder, signature.args[2], packed, distant, row)
            builder.store(emit_part(builder, x, element, which), place, align=BYTES)
        return context.get_dummy_value()

    return types.void(a, types.intp, panel, types.intp), emitted


@intrinsic
def pack_words(typing, b, at, stride, panel, to):
    """Pack the elements that fill a row of each of two tiles: 32 columns of the rows that share a word.

    They begin at the element `at` of b, in rows `stride` elements apart, and go to the word `to` of a panel and on.
    """

    def emitted(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, at, stride, packed, to = arguments
        element, bits = signature.args[0].dtype, signature.args[0].dtype.bitwidth
        row, words = (ir.VectorType(kind, SIDE) for kind in (ir.IntType(bits), WORD))
        rows = []
        for _ in range(32 // bits):
            place = emit_place(context, builder, signature.args[0], array, at, row)
            rows.append(builder.load(place, align=bits // 8))
            at = builder.add(at, stride)
        for which in range(parts(element)):
            filled = ir.Constant(words, None)
            for shift, x in enumerate(rows):
                wide = builder.zext(emit_part(builder, x, element, which), words)
                filled = builder.or_(filled, builder.shl(wide, ir.Constant(words, [bits * shift] * SIDE)))
            for tile in range(2):
                lanes = ir.Constant(ir.VectorType(WORD, ROWS), list(range(tile * ROWS, (tile + 1) * ROWS)))
                half = builder.shuffle_vector(filled, filled, lanes)
                distant = plus(builder, to, (2 * which + tile) * TILE)
                place = emit_place(context, builder, signature.args[3], packed, distant, half.type)
                builder.store(half, place, align=BYTES)
        return context.get_dummy_value()

    return types.void(b, types.intp, types.intp, panel, types.intp), emitted


def writer(lanes: int) -> Any:
    """What `intrinsic` makes functions of that write so many sums."""

    def write(typing: Any, buffer: Any, at: Any, c: Any, to: Any, add: Any) -> Any:
        """Write sums from the buffer to c, or where `add` is true, add them. Returns whether any is not finite."""

        def emitted(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            waiting, at, result, to, add = arguments
            sums = ir.VectorType(context.get_value_type(buffer.dtype), lanes)
            x = builder.load(emit_place(context, builder, buffer, waiting, at, sums), align=4)
            write_sums(builder, [emit_place(context, builder, c, result, to, sums)], [x], add, 4)
            if buffer.dtype == types.int32:
                return ir.Constant(ir.IntType(1), 0)
            words = ir.VectorType(WORD, lanes)
            infinity = ir.Constant(words, [0x7F800000] * lanes)
            unlike = builder.icmp_unsigned("==", builder.and_(builder.bitcast(x, words), infinity), infinity)
            flags = builder.bitcast(unlike, ir.IntType(lanes))
            return builder.icmp_unsigned("!=", flags, ir.Constant(flags.type, 0))

        return types.boolean(buffer, types.intp, c, types.intp, types.boolean), emitted

    return write


write_row, write_sum = intrinsic(writer(SIDE)), intrinsic(writer(1))
