# vecadd: c[i] = a[i] + b[i] for vectors of n elements.
# Idea: an ordinary store reads the line that it is about to overwrite, a quarter of all traffic here, unless the whole
#   line is overwritten at once. So the sums of some lines are written in LLVM's own language, where a vector is as long
#   as they are, and where a store can be said to go past the cache; Numba's has neither.
# Model: a decorator compiles the Python loops, prange spreads stretches over threads, and an intrinsic emits the
#   instructions for a turn of four lines. A short vector is added by the calling thread: to wake others takes longer.
# Memory: where the vectors exceed the last-level cache, c is streamed to memory; else it stays in the cache, in which
#   its reader will want it.
# Edges: one element at a time until a stretch of c is at the begin of a line, and after its last full turn.

from typing import Any

from llvmlite import binding, ir
from numba import get_num_threads, njit, prange, types
from numba.core import cgutils
from numba.extending import intrinsic

from py_backends.backend._numba_formats import emit_narrowed, emit_widened, narrow, widen
from py_backends.caches import last_level_cache

LINE = 64
"""Bytes of a cache line."""
TURN = 4 * LINE
"""Bytes that the loop adds in one turn; LLVM makes as many stores of them as it takes registers."""
SHORTEST, LONGEST = 1 << 14, 1 << 18
"""Elements of a stretch: some pages, so that neighbouring threads rarely share one; and so many that the wait for what
was streamed, at the end of each, takes no time to speak of."""
FEW_TO_SHARE = 1 << 16
"""Elements below which a second thread costs more than it saves."""
CACHE = last_level_cache()
X86 = "sse" in binding.get_host_cpu_features()


def turn(nontemporal: bool) -> Any:
    """A function for one turn, which stores as asked for."""

    @intrinsic
    def add_turn(typing: Any, a: Any, b: Any, c: Any, i: Any) -> Any:
        """Write the sums of the TURN of elements from i on; c[i] is at the begin of a line."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            element = context.get_value_type(signature.args[2].dtype)
            size = context.get_abi_sizeof(element)
            vector = ir.PointerType(ir.VectorType(element, TURN // size))
            arrays = (context.make_array(signature.args[x])(context, builder, arguments[x]).data for x in range(3))
            to_a, to_b, to_c = (builder.bitcast(builder.gep(array, [arguments[3]]), vector) for array in arrays)
            x, y = (emit_widened(builder, builder.load(each, align=size), c.dtype) for each in (to_a, to_b))
            store = builder.store(emit_narrowed(builder, builder.fadd(x, y), c.dtype), to_c, align=LINE)
            if nontemporal:
                store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
            return context.get_dummy_value()

        return types.void(a, b, c, types.intp), emit

    return add_turn


store_turn, stream_turn = turn(nontemporal=False), turn(nontemporal=True)


@intrinsic
def finish_streaming(typing):
    """Let others see what was streamed before they see what comes after: on x86 no ordinary fence does that."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if X86:
            fence = ir.FunctionType(ir.VoidType(), [])
            builder.call(cgutils.get_or_insert_function(builder.module, fence, "llvm.x86.sse.sfence"), [])
        else:
            builder.fence("release")
        return context.get_dummy_value()

    return types.void(), emit


@njit(nogil=True)
def add(a, b, c, begin, end):
    """The elements from `begin` to before `end`."""
    for i in range(begin, end):
        c[i] = narrow(widen(a[i]) + widen(b[i]), c.dtype)


@njit(nogil=True)
def whole_turns(c, begin, end):
    """Where in `begin` to `end` the whole turns begin and end: at begins of lines."""
    step = TURN // c.itemsize
    first = min(end, begin + -(c.ctypes.data + begin * c.itemsize) % LINE // c.itemsize)
    return first, first + (end - first) // step * step


@njit(nogil=True)
def add_stored(a, b, c, begin, end):
    """The elements from `begin` to before `end`, c by whole lines: what is overwritten whole need not be read."""
    first, last = whole_turns(c, begin, end)
    add(a, b, c, begin, first)
    for i in range(first, last, TURN // c.itemsize):
        store_turn(a, b, c, i)
    add(a, b, c, last, end)


@njit(nogil=True)
def add_streamed(a, b, c, begin, end):
    """The same, past the cache."""
    first, last = whole_turns(c, begin, end)
    add(a, b, c, begin, first)
    for i in range(first, last, TURN // c.itemsize):
        stream_turn(a, b, c, i)
    add(a, b, c, last, end)
    finish_streaming()


@njit(parallel=True, nogil=True)
def add_shared(a, b, c, n):
    streamed = 3 * n * c.itemsize > CACHE
    length = max(SHORTEST, min(LONGEST, (n + get_num_threads() - 1) // get_num_threads()))
    for stretch in prange((n + length - 1) // length):
        begin, end = stretch * length, min(n, (stretch + 1) * length)
        if streamed:
            add_streamed(a, b, c, begin, end)
        else:
            add_stored(a, b, c, begin, end)


@njit(nogil=True)
def vecadd(a, b, c, n):
    if n <= FEW_TO_SHARE:
        add(a, b, c, 0, n)
    else:
        add_shared(a, b, c, n)
