# attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
# Idea: a block shares tiles of keys and values. A thread has the scores of 16 keys in its own memory, so that it reads
#   its query, and adds to its row of c, once for 16 keys.
# Model: a thread has one query. Barriers end the use of a tile, and begin that of the next one.
# Work items: m, in groups of 128
# Memory: a block brings 32 columns of 16 keys or values to shared memory, widened to the format of sums. The largest
#   score so far is taken off, and where a larger one comes, what was summed before is made smaller.
# Edges: keys beyond the last have scores of -infinity, which weigh nothing. Threads past the last query bring tiles
#   alone. If all scores of a query are -infinity, 0 / 0 is NaN.

from math import exp, inf, sqrt

from numba import cuda
from numpy import uint64

from py_backends.backend.formats.numba_cuda import widen

THREADS, KEYS, WIDTH = 128, 16, 32


@cuda.jit(device=True)
def bring(rows, begin, apart, count, wide, tile):
    """Brings a part of some rows to shared memory."""
    cuda.syncthreads()  # nobody reads the tile any more
    for at in range(cuda.threadIdx.x, count * WIDTH, THREADS):
        # Numba does not check an unsigned index for counting from the end.
        if at % WIDTH < wide:
            tile[at // WIDTH, at % WIDTH] = widen(rows[uint64(begin + at // WIDTH * apart + at % WIDTH)])
    cuda.syncthreads()  # it is complete


@cuda.jit
def attention(q, k, v, c, m, d, n):
    # Numbers of c's type: 0.0 would make the sums float64, even for float32.
    zero, nothing = c.dtype.type(0), c.dtype.type(-inf)
    tile, weight = cuda.shared.array((KEYS, WIDTH), c.dtype), cuda.local.array(KEYS, c.dtype)
    i, root = cuda.grid(1), sqrt(c.dtype.type(d))
    largest, sum = nothing, zero
    for j in range(0, n, KEYS):
        count = min(KEYS, n - j)
        for e in range(KEYS):
            weight[e] = zero
        for x in range(0, d, WIDTH):
            wide = min(WIDTH, d - x)
            bring(k, j * d + x, d, count, wide, tile)
            for at in range(wide if i < m else 0):
                own = widen(q[uint64(i * d + x + at)])
                for e in range(count):
                    weight[e] += own * tile[e, at]
        larger = largest
        for e in range(KEYS):
            weight[e] = weight[e] / root if e < count else nothing
            larger = max(larger, weight[e])
        limit = zero if larger == nothing else larger
        kept, largest = exp(largest - limit), larger
        sum *= kept
        for e in range(KEYS):
            weight[e] = exp(weight[e] - limit)
            sum += weight[e]
        for x in range(0, d, WIDTH):
            wide = min(WIDTH, d - x)
            bring(v, j * d + x, d, count, wide, tile)
            for at in range(wide if i < m else 0):
                place = uint64(i * d + x + at)
                total = zero if j == 0 else c[place] * kept
                for e in range(count):
                    total += weight[e] * tile[e, at]
                c[place] = total
    for x in range(d if i < m else 0):
        c[uint64(i * d + x)] /= sum
