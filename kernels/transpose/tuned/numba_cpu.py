# transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
# Idea: squares whose rows fill a cache line are turned in registers, so that c is written by whole lines. Numba's
#   language has no vectors. So a square is turned in LLVM's own language, where a vector may be as long as a line.
# Model: a decorator compiles the Python loops, and prange spreads rows of squares over threads. An intrinsic emits the
#   instructions for a square. The calling thread moves small matrices by itself, since waking others takes longer.
# Memory: reads a line of a, and writes one of c, at a time. Where all rows of c begin lines at the same columns, so do
#   the squares. Otherwise lines would be written in two halves, and powers of two throw them out of the cache between.
# Edges: the last squares begin before their neighbours end. What is narrower than a square is moved element by element.

from typing import Any

from llvmlite import ir
from numba import njit, prange, types
from numba.extending import intrinsic

LINE, PIECE = 64, 16
"""Bytes of a cache line, and of the pieces of registers within which instructions interleave elements."""
FEW_TO_SHARE = 1 << 20
"""Bytes below which a second thread costs more than it saves."""
get_num_threads = types.ExternalFunction("get_num_threads", types.intp())
"""Numba's own, by its name for the linker. By that of Python, it is an address, and no later run could use the code."""


def places(of: Any) -> ir.Constant:
    """The elements that a shuffle takes, those of the second vector behind those of the first."""
    of = list(of)
    return ir.Constant(ir.VectorType(ir.IntType(32), len(of)), of)


def joined(builder: ir.IRBuilder, parts: list[ir.Value]) -> ir.Value:
    """Vectors one after the other, in a single one."""
    while len(parts) > 1:
        every = places(range(2 * parts[0].type.count))
        parts = [builder.shuffle_vector(x, y, every) for x, y in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def interleaved(builder: ir.IRBuilder, x: ir.Value, y: ir.Value, count: int) -> list[ir.Value]:
    """Elements of two vectors by turns, in each piece of so many by itself: one instruction each."""
    width, half = x.type.count, count // 2
    first = [piece + at + of for piece in range(0, width, count) for at in range(half) for of in (0, width)]
    return [
        builder.shuffle_vector(x, y, places(first)),
        builder.shuffle_vector(x, y, places([at + half for at in first])),
    ]


@intrinsic
def turn_tile(typing: Any, a: Any, c: Any, i: Any, j: Any, m: Any, n: Any) -> Any:
    """Move the lines of c that begin at c[i, j], as many as a piece has elements.

    A register has pieces of as many rows of a. Rows r and r + half are interleaved, as often as it takes to halve them
    down to one: each time an element's row gives a digit of its number to its column, and its column one to its row.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        element = context.get_value_type(signature.args[1].dtype)
        size = context.get_abi_sizeof(element)
        side, count = LINE // size, PIECE // size
        to_a, to_c = (context.make_array(signature.args[x])(context, builder, arguments[x]).data for x in (0, 1))
        row, column, width_of_a, width_of_c = arguments[2:]
        from_row = builder.gep(to_a, [builder.add(builder.mul(column, width_of_a), row)])
        to_row = builder.gep(to_c, [builder.add(builder.mul(row, width_of_c), column)])
        pieces = []
        for _ in range(side):
            to_piece = builder.bitcast(from_row, ir.PointerType(ir.VectorType(element, count)))
            pieces.append(builder.load(to_piece, align=size))
            from_row = builder.gep(from_row, [width_of_a])
        lines = [joined(builder, pieces[r::count]) for r in range(count)]
        for _ in range(count.bit_length() - 1):
            pairs = zip(lines[: count // 2], lines[count // 2 :], strict=True)
            lines = [line for x, y in pairs for line in interleaved(builder, x, y, count)]
        for line in lines:
            builder.store(line, builder.bitcast(to_row, ir.PointerType(line.type)), align=size)
            to_row = builder.gep(to_row, [width_of_c])
        return context.get_dummy_value()

    return types.void(a, c, i, j, m, n), emit


@njit(nogil=True)
def move_elements(a, c, first, last, n):
    """Move rows of c, from the first to before the last, one element at a time."""
    for i in range(first, last):
        for j in range(n):
            c[i, j] = a[j, i]


@njit(nogil=True)
def move_rows(a, c, first, last, m, n):
    """Do the same by squares."""
    side, count = LINE // c.itemsize, PIECE // c.itemsize
    if n < side or last - first < count:
        move_elements(a, c, first, last, n)
        return
    since_line = c.ctypes.data % LINE // c.itemsize if n % side == 0 else 0
    for x in range(first, last, side):
        for y in range(-since_line, n, side):
            for i in range(x, min(x + side, last), count):
                turn_tile(a, c, min(i, last - count), max(0, min(y, n - side)), m, n)


@njit(parallel=True, nogil=True)
def move_shared(a, c, m, n):
    side = LINE // c.itemsize
    chunks = 4 * get_num_threads()
    rows = ((m + chunks - 1) // chunks + side - 1) // side * side
    for chunk in prange((m + rows - 1) // rows):
        move_rows(a, c, chunk * rows, min(m, (chunk + 1) * rows), m, n)


@njit(nogil=True)
def transpose(a, c, m, n):
    if 2 * m * n * c.itemsize <= FEW_TO_SHARE:
        move_rows(a, c, 0, m, m, n)
    else:
        move_shared(a, c, m, n)
