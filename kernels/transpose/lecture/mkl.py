# transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
# Model: one call into Intel's MKL, a tuned library, for c = 1 a transposed. It divides the matrix among threads.
# Memory: reads a and writes c once, in an order that MKL chooses.
# Edges: the distance between rows is at least 1, even if rows are empty.
# ---
# Formats: float32, float64

from py_backends.backend._mkl import library

ROW_MAJOR, TRANSPOSED = b"R", b"T"

mkl = library()


def transpose(a, c, m, n):
    move = mkl.MKL_Somatcopy if c.dtype == "float32" else mkl.MKL_Domatcopy
    move(ROW_MAJOR, TRANSPOSED, n, m, 1, a, max(1, m), c, max(1, n))
