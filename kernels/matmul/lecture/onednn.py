# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: a primitive of Intel's oneDNN, a tuned library, which generates code for this shape and CPU. For int8 it is a
#   function instead, since the primitive's sums pass through float32.
# Memory: oneDNN copies blocks of a and b into the cache, and reads them many times from there. The sums are in the
#   format of c: float32 for both 16-bit formats, int32 for int8.
# Edges: where k is 0, oneDNN leaves c as it is, so it is set to 0 here.
# ---
# Formats: float32, float16, bfloat16, int8

from py_backends.backend._onednn import Matrix, multiply, multiply_integers


def matmul(a, b, c, m, n, k):
    if k == 0:
        c[: m * n] = 0
    elif a.dtype == "int8":
        multiply_integers(a, b, c, m, n, k)
    else:
        multiply(a, b, c, (Matrix(m, k, a.dtype), Matrix(k, n, b.dtype), Matrix(m, n, c.dtype)))
