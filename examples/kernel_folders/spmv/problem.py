"""spmv: y = A x, for a sparse matrix A of m x n in CSR: its values, the column of each, and where each row begins.

|error| <= k u |A| |x| for rows of k products, in any order, fused or not (Jeannerod and Rump, Improved error bounds for
inner products in floating-point arithmetic, SIAM J. Matrix Anal. Appl. 34, 2013), and a subnormal for each.
"""

import numpy as np

from py_backends.contract import Problem, Reference


class Spmv(Problem):
    name, nonzero_sizes = "spmv", ("m", "n")
    signature = "(nonzeros),(nonzeros):int32,(m+1):int32,(n)->(m)"
    default_sizes = (200_003, 2_000_003, 100_003)

    def draw(self, sizes, dtype, generator):
        m, nonzeros, n = sizes
        begins = np.sort(generator.integers(0, nonzeros, m - 1, endpoint=True))
        yield generator.standard_normal(nonzeros)
        yield generator.integers(0, n, nonzeros)
        yield np.concatenate(([0], begins, [nonzeros]))
        yield generator.standard_normal(n)

    @np.errstate(all="ignore")
    def reference(self, values, columns, begins, x):
        limits = np.finfo(x.dtype)
        doubled = 2 if x.dtype == np.float64 else 1
        u, tiny = (doubled * float(each) for each in (limits.eps / 2, limits.smallest_subnormal))
        counts = np.diff(begins)
        rows = np.repeat(np.arange(counts.size), counts)
        products = values.astype(np.float64) * x.astype(np.float64)[columns]
        finite = np.where(np.isfinite(products), np.abs(products), 0)
        y, sizes, of_nan = (np.bincount(rows, each, counts.size) for each in (products, finite, np.isnan(products)))
        bound = counts * (u * sizes + tiny)
        overflow = ~((1 + counts * u) * sizes <= limits.max) & (of_nan == 0)
        return Reference(y, bound, overflow)

    def flops(self, sizes):
        return 2 * sizes[1]


PROBLEM = Spmv()
