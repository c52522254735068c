# vecadd: c[i] = a[i] + b[i] for vectors of n elements.
# Idea: an ordinary store first reads the line that it overwrites, a quarter of all traffic here, unless the whole line
#   is overwritten at once. So the sums of some lines are written in LLVM's own language. There a vector may be as long
#   as these lines, and a store can go past the cache. Numba's language has neither.
# Model: a decorator compiles the Python loops, and prange spreads chunks over threads. An intrinsic emits the
#   instructions for a step of one line or four. The calling thread adds short vectors by itself, since waking others
#   takes longer.
# Memory: where the vectors exceed the last-level cache, or 96 MiB, c is streamed to memory. Else it stays in the cache,
#   where its reader wants it.
# Edges: one element at a time until a chunk of c begins a line, and after its last full step.

from typing import Any

from llvmlite import binding, ir
from numba import njit, prange, types
from numba.core import cgutils
from numba.extending import intrinsic

from py_backends.backend.formats.numba_cpu import narrow, widen
from py_backends.system.caches import effective_cache

from .numba_cpu_pairs import emit_sums_of_pairs

LINE = 64
"""Bytes of a cache line."""
AHEAD = 4096
"""Bytes between what is added and what is prefetched. The CPU's own prefetching ends with a page. In the 16-bit formats
so many instructions stand between loads that too few of them are under way."""
SHORTEST, LONGEST = 1 << 14, 1 << 18
"""Elements of a chunk: some pages, so that neighbouring threads rarely share one. At the end of a chunk, its streamed
stores are waited for; chunks are so long that this hardly counts."""
FEW_TO_SHARE = 1 << 16
"""Elements below which a second thread costs more than it saves."""
CACHE = effective_cache()
get_num_threads = types.ExternalFunction("get_num_threads", types.intp())
"""Numba's own, by its name for the linker. By that of Python, it is an address, and no later run could use the code."""
X86 = "sse" in binding.get_host_cpu_features()


@njit
def step_of(itemsize):
    """Bytes that an iteration of the loop adds.

    LLVM makes as many stores of them as it takes registers. In 16 bits it is one line, since sums need most registers.
    """
    return LINE if itemsize == 2 else 4 * LINE


def emit_prefetch(builder: ir.IRBuilder, line: ir.Value) -> None:
    """Prefetch what lies AHEAD bytes after a line."""
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
    to_read, to_second_level, data = (number(each) for each in (0, 2, 1))
    later = builder.gep(builder.bitcast(line, byte), [number(AHEAD)])
    builder.call(prefetch, [later, to_read, to_second_level, data])


def adder(nontemporal: bool) -> Any:
    """A function that adds one step, and stores past the cache if `nontemporal`."""

    @intrinsic
    def add_step(typing: Any, a: Any, b: Any, c: Any, i: Any) -> Any:
        """Write the sums of a step from element i on, where c[i] begins a line."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            element = context.get_value_type(signature.args[2].dtype)
            size = context.get_abi_sizeof(element)
            vector = ir.PointerType(ir.VectorType(element, step_of.py_func(size) // size))
            arrays = (context.make_array(signature.args[x])(context, builder, arguments[x]).data for x in range(3))
            to_a, to_b, to_c = (builder.bitcast(builder.gep(array, [arguments[3]]), vector) for array in arrays)
            x, y = (builder.load(each, align=size) for each in (to_a, to_b))
            sums = emit_sums_of_pairs(builder, x, y, c.dtype) if size == 2 else builder.fadd(x, y)
            store = builder.store(sums, builder.bitcast(to_c, ir.PointerType(sums.type)), align=LINE)
            if nontemporal and size == 2:
                emit_prefetch(builder, to_a)
                emit_prefetch(builder, to_b)
            if nontemporal:
                store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
            return context.get_dummy_value()

        return types.void(a, b, c, types.intp), emit

    return add_step


store_step, stream_step = adder(nontemporal=False), adder(nontemporal=True)


@intrinsic
def finish_streaming(typing):
    """Let other threads see what was streamed before what comes after. On x86 no ordinary fence does that."""

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
    """Add the elements from `begin` to before `end`."""
    for i in range(begin, end):
        c[i] = narrow(widen(a[i]) + widen(b[i]), c.dtype)


@njit(nogil=True)
def whole_steps(c, begin, end):
    """Where the first whole step from `begin` to `end` begins, and the last one ends. Steps begin with a line."""
    step = step_of(c.itemsize) // c.itemsize
    first = min(end, begin + -(c.ctypes.data + begin * c.itemsize) % LINE // c.itemsize)
    return first, first + (end - first) // step * step


@njit(nogil=True)
def add_stored(a, b, c, begin, end):
    """Add the elements from `begin` to before `end`, c by whole lines: those need not be read first."""
    first, last = whole_steps(c, begin, end)
    add(a, b, c, begin, first)
    for i in range(first, last, step_of(c.itemsize) // c.itemsize):
        store_step(a, b, c, i)
    add(a, b, c, last, end)


@njit(nogil=True)
def add_streamed(a, b, c, begin, end):
    """Do the same, past the cache."""
    first, last = whole_steps(c, begin, end)
    add(a, b, c, begin, first)
    for i in range(first, last, step_of(c.itemsize) // c.itemsize):
        stream_step(a, b, c, i)
    add(a, b, c, last, end)
    finish_streaming()


@njit(parallel=True, nogil=True)
def add_shared(a, b, c, n):
    streamed = 3 * n * c.itemsize > CACHE
    length = max(SHORTEST, min(LONGEST, (n + get_num_threads() - 1) // get_num_threads()))
    for chunk in prange((n + length - 1) // length):
        begin, end = chunk * length, min(n, (chunk + 1) * length)
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
