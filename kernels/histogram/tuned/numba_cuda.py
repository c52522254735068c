# histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
# Idea: a block has four tables in shared memory, which its threads take by turns. So few threads meet at a counter, and
#   updates take a fraction of the time that they take in global memory. A thread counts 16 elements, so that few tables
#   are added to c.
# Model: all threads set the tables to 0, and then count. Then each adds up one counter of all tables, and adds the sum
#   to that of all, by an atomic update. At each barrier all wait for one another. A first kernel sets c to 0.
# Memory: reads a once, neighbouring threads neighbouring elements. Tables are 257 counters apart, so that those of one
#   bin lie in different banks.
# Edges: the loop of the last block ends at n. What lies outside of [0, 1), NaN too, is counted nowhere.
# ---
# Work items of clear: 256, in groups of 256
# Work items: ceil(n / 16), in groups of 256

from numba import cuda, int32, int64

from py_backends.backend.formats.numba_cuda import widen

THREADS = 256
EACH = 16  # elements of a thread
TABLES = 4
APART = 257


@cuda.jit
def clear(a, c, n):
    c[cuda.threadIdx.x] = 0


@cuda.jit
def histogram(a, c, n):
    table = cuda.shared.array(TABLES * APART, int32)
    thread = cuda.threadIdx.x
    for at in range(thread, TABLES * APART, THREADS):
        table[at] = 0
    cuda.syncthreads()
    own = thread % TABLES * APART
    begin = int64(cuda.blockIdx.x) * THREADS * EACH
    for i in range(begin + thread, min(n, begin + THREADS * EACH), THREADS):
        place = widen(a[i]) + 128 if a.dtype.itemsize == 1 else 256 * widen(a[i])
        if place >= 0 and place < 256:
            cuda.atomic.add(table, own + int64(place), 1)
    cuda.syncthreads()
    sum = int32(0)
    for of in range(TABLES):
        sum += table[of * APART + thread]
    if sum > 0:
        cuda.atomic.add(c, thread, sum)
