# dot: c = the sum of a[i] b[i] for vectors of n elements.
# Model: one call into Intel's MKL, a tuned library. It divides long vectors among threads.
# Memory: reads a and b once, in order: neighbouring elements lie 1 apart.
# Edges: none; MKL takes sizes of 64 bits, and an empty sum is 0.
# ---
# Formats: float32, float64

from py_backends.backend._mkl import library

mkl = library()


def dot(a, b, c, n):
    product = mkl.cblas_sdot_64 if c.dtype == "float32" else mkl.cblas_ddot_64
    c[0] = product(n, a, 1, b, 1)
