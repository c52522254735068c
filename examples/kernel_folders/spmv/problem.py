"""spmv: y = A x, for a sparse matrix A of m x n in CSR: its values, the column of each, and where each row begins."""

import numpy as np

from py_backends.contract import Problem


class Spmv(Problem):
    name, nonzero_sizes = "spmv", ("m", "n")
    signature = "(nonzeros),(nonzeros):int32,(m+1):int32,(n)->(m)"
    default_sizes = (200_003, 2_000_003, 100_003)

    @staticmethod
    def function(values, columns, begins, x):
        counts = np.diff(begins)
        return np.bincount(np.repeat(np.arange(counts.size), counts), values * x[columns], counts.size)

    def draw(self, sizes, dtype, generator):
        m, nonzeros, n = sizes
        begins = np.sort(generator.integers(0, nonzeros, m - 1, endpoint=True))
        yield generator.standard_normal(nonzeros)
        yield generator.integers(0, n, nonzeros)
        yield np.concatenate(([0], begins, [nonzeros]))
        yield generator.standard_normal(n)

    def flops(self, sizes):
        return 2 * sizes[1]


PROBLEM = Spmv()
