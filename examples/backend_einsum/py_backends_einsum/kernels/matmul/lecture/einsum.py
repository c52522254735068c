# matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
# Model: indices have names; over one that the result lacks, p, the products are summed.
# Memory: NumPy chooses the order of the loops, and reads a and b where they are.
# Edges: none; the arrays know their shapes, and an empty sum is 0.

import numpy as np


def matmul(a, b, c, m, n, k):
    np.einsum("ip,pj->ij", a, b, out=c)
