# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Idea: a tile of c stays in vector registers while p runs. LLVM keeps no array of Numba's there. Loops that read and
#   write the sums in the cache reach half of the speed. So the innermost loop is written in LLVM's own language.
# Model: a decorator compiles the Python loops. prange spreads bands of c, one tile high, over threads. An intrinsic
#   emits the tile's instructions. On the target amx, numba_cpu_amx.py runs in place of this.
# Memory: a block of b is packed into panels that the tile reads in order. It stays in the second-level cache while all
#   bands use it. A band of a is copied into the first-level cache. Both copies are in the format of the sums.
# Edges: bands and panels are filled up with zeros, and only the part of a tile that exists is written to c.
# ---
# Formats on amx: float16, bfloat16, int8

from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import njit, prange, types
from numba.core import cgutils
from numba.extending import intrinsic

from py_backends.backend.formats.numba_cpu import widen
from py_backends.system.caches import first_level_cache, second_level_cache

REGISTER, HEIGHT = (64, 14) if binding.get_host_cpu_features().get("avx512f") else (32, 6)
"""Bytes of a vector register, and rows of a tile. Twice as many sums fill the 32 registers of AVX-512, or 16."""
LINE = 64
"""Bytes of a cache line."""
DEPTH = max(1, first_level_cache() * 2 // 3 // HEIGHT // LINE) * LINE
"""Most bytes of a row of a band. A third of the first-level cache is left for what passes through it of b and c."""
STRIDE = DEPTH + LINE
"""Bytes from row to row of a band: not a power of two, since such rows compete for the same sets of a cache."""
BLOCK = second_level_cache() // 2
"""Bytes of a block of b, about. A band of a, and c, pass through the same cache."""


def total(builder: Any, x: Any, y: Any) -> Any:
    """Compute x + y, of vectors."""
    return builder.add(x, y) if isinstance(x.type.element, ir.IntType) else builder.fadd(x, y)


def multiply_add(builder: Any, x: Any, y: Any, z: Any) -> Any:
    """Compute x y + z, of vectors."""
    vector = x.type
    if isinstance(vector.element, ir.IntType):
        return builder.add(builder.mul(x, y), z)
    name = f"llvm.fmuladd.v{vector.count}f{8 * REGISTER // vector.count}"
    fused = cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector] * 3), name)
    return builder.call(fused, [x, y, z])


def write_sums(builder: Any, places: Any, sums: Any, add: Any, align: Any) -> None:
    """Write the sums to their places, or where `add` is true, add them to what is there."""
    with builder.if_else(add) as (added_to, replaced):
        with added_to:
            for place, sum in zip(places, sums, strict=True):
                builder.store(total(builder, builder.load(place, align=align), sum), place, align=align)
        with replaced:
            for place, sum in zip(places, sums, strict=True):
                builder.store(sum, place, align=align)


@intrinsic
def multiply_tile(typing, band, panel, depth, to, stride, add):
    """Multiply flat arrays: HEIGHT rows of a, STRIDE apart, by `depth` rows of 2 registers of b.

    The sums are written to the address `to`, or added to what is there, in rows `stride` bytes apart.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        element = context.get_value_type(signature.args[0].dtype)
        size = context.get_abi_sizeof(element)
        lanes = REGISTER // size
        vector, index = ir.VectorType(element, lanes), arguments[2].type
        a, b = (context.make_array(signature.args[i])(context, builder, arguments[i]).data for i in (0, 1))
        zeros = ir.Constant(vector, None)
        first = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)

        def at(array: Any, place: Any, kind: Any) -> Any:
            return builder.bitcast(builder.gep(array, [place]), ir.PointerType(kind))

        def plus(place: Any, distance: Any) -> Any:
            return builder.add(place, ir.Constant(index, distance))

        def times(place: Any, factor: Any) -> Any:
            return builder.mul(place, ir.Constant(index, factor))

        def spread(factor: Any) -> Any:
            lane = builder.insert_element(zeros, factor, ir.Constant(ir.IntType(32), 0))
            return builder.shuffle_vector(lane, zeros, first)

        before, loop = builder.block, builder.append_basic_block("products")
        after = builder.append_basic_block("sums")
        builder.branch(loop)
        builder.position_at_end(loop)
        p = builder.phi(index)
        sums = [builder.phi(vector) for _ in range(2 * HEIGHT)]
        rows = [builder.load(at(b, plus(times(p, 2 * lanes), s * lanes), vector), align=size) for s in (0, 1)]
        added = []
        for i in range(HEIGHT):
            factor = spread(builder.load(at(a, plus(p, i * (STRIDE // size)), element)))
            added += [multiply_add(builder, factor, row, sums[2 * i + s]) for s, row in enumerate(rows)]
        following = plus(p, 1)
        builder.cbranch(builder.icmp_signed("<", following, arguments[2]), loop, after)
        for value, start, end in zip(
            (p, *sums), (ir.Constant(index, 0), *[zeros] * len(sums)), (following, *added), strict=True
        ):
            value.add_incoming(start, before)
            value.add_incoming(end, loop)
        builder.position_at_end(after)
        _, _, _, to, stride, add = arguments
        places = [
            builder.inttoptr(builder.add(to, plus(times(stride, i), s * REGISTER)), ir.PointerType(vector))
            for i in range(HEIGHT)
            for s in (0, 1)
        ]
        write_sums(builder, places, added, add, size)
        return context.get_dummy_value()

    return types.void(band, panel, types.intp, types.intp, types.intp, types.boolean), emit


@njit(nogil=True)
def aligned(size, dtype):
    """Memory for `size` elements that begins with a cache line. Vectors that straddle two lines take twice as long."""
    memory = np.empty(size + LINE // 4, dtype)
    begin = -memory.ctypes.data % LINE // memory.itemsize
    return memory[begin : begin + size]


@njit(nogil=True)
def widen_row(row, widened):
    for j in range(row.size):
        widened[j] = widen(row[j])


@njit(nogil=True)
def pack_panel(b, j, width, panel):
    """Copy the rows of b from column j on, one after the other, each filled up with zeros to `width`."""
    columns = min(width, b.shape[1] - j)
    for p in range(b.shape[0]):
        row = panel[p * width : (p + 1) * width]
        widen_row(b[p, j : j + columns], row[:columns])
        row[columns:] = 0


@njit(nogil=True)
def write_row(row, c, add):
    if add:
        for j in range(c.size):
            c[j] += row[j]
    else:
        for j in range(c.size):
            c[j] = row[j]


@njit(nogil=True)
def multiply_band(a, p0, depth, block, width, c, add):
    """Compute c = a block, or c += a block, for at most HEIGHT rows of a and c, and `depth` columns of a from p0 on."""
    rows = a.shape[0]
    stride = STRIDE // c.itemsize
    band, tile = aligned(HEIGHT * stride, c.dtype), aligned(HEIGHT * width, c.dtype)
    for i in range(HEIGHT):
        row = i if i < rows else 0  # rows that are not there are not written
        widen_row(a[row, p0 : p0 + depth], band[i * stride : i * stride + depth])
    for j0 in range(0, c.shape[1], width):
        panel, columns = block[j0 * depth :], min(width, c.shape[1] - j0)
        if rows == HEIGHT and columns == width:
            multiply_tile(band, panel, depth, c.ctypes.data + j0 * c.itemsize, c.strides[0], add)
        else:
            multiply_tile(band, panel, depth, tile.ctypes.data, width * c.itemsize, False)
            for i in range(rows):
                write_row(tile[i * width : i * width + columns], c[i, j0 : j0 + columns], add)


@njit(nogil=True)
def even_parts(size, most):
    """The length of about even parts of at most `most`. A short last part would cost as much as a long one."""
    parts = max(1, (size + most - 1) // most)
    return max(1, (size + parts - 1) // parts)


@njit(parallel=True, nogil=True)
def matmul(a, b, c, m, n, k):
    if k == 0:
        c[:] = 0
    width = 2 * REGISTER // c.itemsize
    deepest = even_parts(k, DEPTH // c.itemsize)
    widest = even_parts((n + width - 1) // width, max(1, BLOCK // (deepest * 2 * REGISTER))) * width
    block = aligned(deepest * widest, c.dtype)
    for j0 in range(0, n, widest):
        columns = min(widest, n - j0)
        for p0 in range(0, k, deepest):
            depth = min(deepest, k - p0)
            for panel in prange((columns + width - 1) // width):
                pack_panel(b[p0 : p0 + depth], j0 + panel * width, width, block[panel * depth * width :])
            for band in prange((m + HEIGHT - 1) // HEIGHT):
                i, end = band * HEIGHT, min(m, (band + 1) * HEIGHT)
                multiply_band(a[i:end], p0, depth, block, width, c[i:end, j0 : j0 + columns], p0 > 0)
