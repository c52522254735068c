# spmv: y = A x, for a sparse matrix A of m x n in CSR: its values, the column of each, and where each row begins.
from numba import njit, prange


@njit(parallel=True, nogil=True)
def spmv(values, columns, begins, x, y, m, nonzeros, n):
    for i in prange(m):
        total = y.dtype.type(0)
        for at in range(begins[i], begins[i + 1]):
            total += values[at] * x[columns[at]]
        y[i] = total
