# vecadd: c[i] = a[i] + b[i] for vectors of n elements.
# Model: a kernel in Python, written for one thread of an NVIDIA GPU, which adds one element. The grid covers c.
# Memory: neighbouring threads read and write neighbouring elements of global memory. So the GPU coalesces the accesses
#   of a warp into few transactions.
# Edges: threads past the last element do nothing.
# ---
# Work items: n, in groups of 256

from numba import cuda

from py_backends.backend.formats.numba_cuda import narrow, widen


@cuda.jit
def vecadd(a, b, c, n):
    i = cuda.grid(1)
    if i < n:
        c[i] = narrow(widen(a[i]) + widen(b[i]), c.dtype)
