# histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
# Model: processes of Python (concurrent.futures), a task for each, which counts its part by calls of NumPy. The tables
#   come back as messages, and the caller adds them up.
# Memory: of their own, but for the vector. This lies where all processes map it.
# Edges: some parts have one element more than others, or none. What lies outside of [0, 1), NaN too, is left out.

from functools import partial

import numpy as np


def count(a, part):
    x = a[part]
    inside = (x >= 0) & (x < 1)
    bins = x.astype(np.intp) + 128 if x.dtype == np.int8 else (256 * x[inside]).astype(np.intp)
    return np.bincount(bins, minlength=256)


def histogram(executor, workers, a, c, n):
    parts = [slice(n * task // workers, n * (task + 1) // workers) for task in range(workers)]
    c[:] = np.sum(list(executor.map(partial(count, a), parts)), axis=0)
