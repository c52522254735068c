# layer_norm: y[i, j] = (x[i, j] - mean of row i) r[i], r[i] = 1 / sqrt(variance of row i + epsilon).
import numpy as np
from numba import njit, prange


@njit(parallel=True, nogil=True)
def layer_norm(x, y, r, m, n, epsilon):
    for i in prange(m):
        mean = epsilon * 0
        for j in range(n):
            mean += x[i, j]
        mean /= n
        square = epsilon * 0
        for j in range(n):
            square += (x[i, j] - mean) ** 2
        r[i] = 1 / np.sqrt(square / n + epsilon)
        for j in range(n):
            y[i, j] = (x[i, j] - mean) * r[i]
