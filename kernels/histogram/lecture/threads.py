# histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
# Model: threads of Python (concurrent.futures), a task for each, which counts its part by calls of NumPy. The tasks
#   compute at the same time where NumPy gives Python's lock away. The caller adds up the tables that they return.
# Memory: shared. Each task reads its part of a, in order, and writes nothing that another one reads.
# Edges: some parts have one element more than others, or none. What lies outside of [0, 1), NaN too, is left out.

import numpy as np


def histogram(executor, workers, a, c, n):
    def count(part):
        x = a[part]
        inside = (x >= 0) & (x < 1)
        bins = x.astype(np.intp) + 128 if x.dtype == np.int8 else (256 * x[inside]).astype(np.intp)
        return np.bincount(bins, minlength=256)

    parts = [slice(n * task // workers, n * (task + 1) // workers) for task in range(workers)]
    c[:] = np.sum(list(executor.map(count, parts)), axis=0)
