# vecadd: c[i] = a[i] + b[i] for vectors of n elements.
# Model: a call into the vector part of Intel's MKL, a tuned library. It divides long vectors among threads.
# Memory: reads a and b once and writes c once, in order.
# Edges: MKL adds fewer than 2^31 elements in one call; longer vectors take several calls.
# ---
# Formats: float32, float64

from py_backends.backend._mkl import library

MOST = 2**30

mkl = library()


def vecadd(a, b, c, n):
    add = mkl.vsAdd_64 if c.dtype == "float32" else mkl.vdAdd_64
    for i in range(0, n, MOST):
        add(min(n - i, MOST), a[i:], b[i:], c[i:])
