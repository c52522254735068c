# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: one call for the whole array. A tuned library (BLAS) does the work, on all cores.
# Memory: BLAS copies blocks of a and b into the cache, and reads them many times from there.
# Edges: none; the arrays know their shapes. Without a dtype, sums would be as narrow as the inputs.

import numpy as np


def matmul(a, b, c, m, n, k):
    np.matmul(a, b, out=c, dtype=c.dtype)
