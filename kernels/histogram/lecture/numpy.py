# histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
# Model: calls for whole arrays, in one thread. `bincount` adds 1 to a counter for each of its elements.
# Memory: each call reads an array and writes a new one: which elements count, these, their bins.
# Edges: what lies outside of [0, 1), NaN too, is left out. `minlength` makes counters of bins that nothing is in.

import numpy as np


def histogram(a, c, n):
    inside = (a >= 0) & (a < 1)
    bins = a.astype(np.intp) + 128 if a.dtype == np.int8 else (256 * a[inside]).astype(np.intp)
    c[:] = np.bincount(bins, minlength=256)
