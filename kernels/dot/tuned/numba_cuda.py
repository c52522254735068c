# dot: c = the sum of a[i] b[i] for vectors of n elements.
# Idea: a thread adds 16 products, and loads their factors before it adds the first. Only many loads on their way at
#   once fill the memory's bandwidth.
# Model: blocks cannot wait for each other, so the first kernel leaves a sum of each. The second one adds these up in a
#   fixed order.
# Memory: reads a and b once, neighbouring threads neighbouring elements. The threads' sums lie in shared memory, where
#   each step of adding them up takes a barrier.
# Edges: a block that is not full multiplies element by element. There are no sums of blocks where n is 0.
# ---
# Work items of add_rows: ceil(n / 16), in groups of 256
# Work items: 256, in groups of 256
# Scratch: ceil(n / 4096) elements of Sum

from numba import cuda
from numpy import uint64

from py_backends.backend.formats.numba_cuda import widen

THREADS = 256
EACH = 16  # products of a thread
PRODUCTS = THREADS * EACH


@cuda.jit(device=True)
def add_up(sums, thread):
    apart = THREADS // 2
    while apart > 0:
        cuda.syncthreads()
        if thread < apart:
            sums[thread] += sums[thread + apart]
        apart //= 2


@cuda.jit
def add_rows(a, b, c, scratch, n):
    sums = cuda.shared.array(THREADS, scratch.dtype)
    x = cuda.local.array(EACH, a.dtype)
    y = cuda.local.array(EACH, b.dtype)
    begin, thread = cuda.blockIdx.x * PRODUCTS, cuda.threadIdx.x
    sum = scratch.dtype.type(0)
    if begin + PRODUCTS <= n:
        for e in range(EACH):
            at = uint64(
                begin + e * THREADS + thread
            )  # Numba does not check it for counting from the end: it is unsigned
            x[e] = a[at]
            y[e] = b[at]
        for e in range(EACH):
            sum += widen(x[e]) * widen(y[e])
    else:
        for i in range(begin + thread, n, THREADS):
            sum += widen(a[uint64(i)]) * widen(b[uint64(i)])
    sums[thread] = sum
    add_up(sums, thread)
    if thread == 0 and begin < n:
        scratch[cuda.blockIdx.x] = sums[0]


@cuda.jit
def dot(a, b, c, scratch, n):
    sums = cuda.shared.array(THREADS, scratch.dtype)
    thread = cuda.threadIdx.x
    sum = scratch.dtype.type(0)
    for i in range(thread, (n + PRODUCTS - 1) // PRODUCTS, THREADS):
        sum += scratch[uint64(i)]
    sums[thread] = sum
    add_up(sums, thread)
    if thread == 0:
        c[0] = sums[0]
