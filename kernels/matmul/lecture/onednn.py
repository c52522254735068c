# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: a primitive of Intel's oneDNN, a tuned library: code that it writes for this shape and the CPU at hand.
#   Of int8 a function of it, since the primitive's sums pass through float32.
# Memory: oneDNN copies blocks of a and b into the cache and reads them many times from there.
#   The sums of both 16-bit formats are in float32, those of int8 in int32, as c is.
# Formats: float32, float16, bfloat16, int8
# Edges: oneDNN leaves c as it is where k is 0; a sum of no products is 0.

from py_backends.backend._onednn import Matrix, multiply, multiply_integers


def matmul(a, b, c, m, n, k):
    if k == 0:
        c[: m * n] = 0
    elif a.dtype == "int8":
        multiply_integers(a, b, c, m, n, k)
    else:
        multiply(a, b, c, (Matrix(m, k, a.dtype), Matrix(k, n, b.dtype), Matrix(m, n, c.dtype)))
