# Numba: Python's own loop, compiled when it is first called, and divided among threads.
from timeit import timeit

import numpy as np
from numba import get_num_threads, get_thread_id, njit, prange


# 1. A function of plain Python. `prange` says that iterations may run at once.
def vecadd(a, b, c, runner):
    for i in prange(a.size):
        c[i] = a[i] + b[i]
        runner[i] = get_thread_id()


# 2. `njit` makes a function that will be compiled. Nothing is compiled yet.
compiled = njit(parallel=True)(vecadd)
print("compiled for", len(compiled.signatures), "sets of types")
print(get_num_threads(), "threads")

# 3. The first call compiles it, for the types that it is called with.
a, b = np.arange(10, dtype=np.float32), np.full(10, 0.5, np.float32)
c, runner = np.empty_like(a), np.empty(10, np.int64)
first = timeit(lambda: compiled(a, b, c, runner), number=1)
print("compiled for", len(compiled.signatures), "sets of types")

# 4. The second call runs what is there.
second = timeit(lambda: compiled(a, b, c, runner), number=1)
print("the second call is faster:", second < first)

# 5. Every thread has computed a part, and all wrote to one array.
print("thread", *runner)
print("c     ", *c)
print("as NumPy adds:", np.array_equal(c, a + b))
