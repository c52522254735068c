# scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
# Model: threads of Python (concurrent.futures), a task for each part, which is one call of NumPy. The tasks add at the
#   same time, since NumPy gives Python's lock away meanwhile. Then other tasks add to each part what comes before it.
# Memory: shared. Each task reads its part of a once and writes its part of c once, in order. The others read and write
#   c once more.
# Edges: some parts have one element more than others, or none. To the first part nothing is added.

import numpy as np


def scan(executor, workers, a, c, n):
    def scan_part(part):
        np.cumsum(a[part], dtype=c.dtype, out=c[part])
        return c[part][-1:].sum(dtype=c.dtype)  # 0 of an empty part

    def add(part, before):
        c[part] += before

    parts = [slice(n * task // workers, n * (task + 1) // workers) for task in range(workers)]
    before = np.cumsum(list(executor.map(scan_part, parts)), dtype=c.dtype)
    list(executor.map(add, parts[1:], before[:-1]))
