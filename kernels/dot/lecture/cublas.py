# dot: c = the sum of a[i] b[i] for vectors of n elements.
# Model: one call for the whole array. NVIDIA's library (BLAS) does the work, on the whole GPU. The sum stays there.
# Memory: reads a and b once, in order.
# Edges: an empty sum is 0. The library takes fewer than 2^31 elements.
# ---
# Formats: float32, float64

from cupy import cublas


def dot(a, b, c, n):
    if n == 0:
        c.fill(0)
    else:
        cublas.dot(a, b, out=c)
