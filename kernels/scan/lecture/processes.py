# scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
# Model: processes of Python (concurrent.futures), a task for each part, which is one call of NumPy. The sums of the
#   parts come back as messages. Then other tasks add to each part what comes before it.
# Memory: of their own, but for the vectors. These lie where all processes map them. Each task reads its part of a once
#   and writes its part of c once, in order. The others read and write c once more.
# Edges: some parts have one element more than others, or none. To the first part nothing is added.

from functools import partial

import numpy as np


def scan_part(a, c, part):
    np.cumsum(a[part], dtype=c.dtype, out=c[part])
    return c[part][-1:].sum(dtype=c.dtype)  # 0 of an empty part


def add(c, part, before):
    c[part] += before


def scan(executor, workers, a, c, n):
    parts = [slice(n * task // workers, n * (task + 1) // workers) for task in range(workers)]
    before = np.cumsum(list(executor.map(partial(scan_part, a, c), parts)), dtype=c.dtype)
    list(executor.map(partial(add, c), parts[1:], before[:-1]))
