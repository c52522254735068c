# spmv: y = A x, for a sparse matrix A of m x n in CSR: its values, the column of each, and where each row begins.
import numpy as np


def spmv(values, columns, begins, x, y, m, nonzeros, n):
    products = np.append(values * x[columns], x.dtype.type(0))  # an empty row at the end begins there
    np.add.reduceat(products, begins[:-1], out=y)
    y[begins[:-1] == begins[1:]] = 0
