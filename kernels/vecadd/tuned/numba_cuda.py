# vecadd: c[i] = a[i] + b[i] for vectors of n elements.
# Model: a thread adds several elements, and loads them all before it adds the first. Only many loads on their way at
#   once fill the memory's bandwidth.
# Memory: neighbouring threads read and write neighbouring elements of global memory.
# Edges: elements past the last one are left out one by one.
# ---
# Work items: ceil(n / 8), in groups of 256

from numba import cuda
from numpy import uint64

from py_backends.backend.formats.numba_cuda import narrow, widen

THREADS = 256
EACH = 8  # elements of a thread


@cuda.jit
def vecadd(a, b, c, n):
    x = cuda.local.array(EACH, a.dtype)
    y = cuda.local.array(EACH, a.dtype)
    first = cuda.blockIdx.x * THREADS * EACH + cuda.threadIdx.x
    for e in range(EACH):
        i = first + e * THREADS
        if i < n:
            x[e] = a[uint64(i)]  # Numba does not check an unsigned index for counting from the end
            y[e] = b[uint64(i)]
    for e in range(EACH):
        i = first + e * THREADS
        if i < n:
            c[uint64(i)] = narrow(widen(x[e]) + widen(y[e]), c.dtype)
