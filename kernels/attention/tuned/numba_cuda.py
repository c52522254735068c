# attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
# Idea: a block has 16 queries and brings 16 keys at a time, and their values, to memory that its threads share. There
#   it reads each of them 16 times, and global memory once. A larger score is met once a tile, not once a key.
# Model: a thread has the score of one query with one key of the tile, and the sums of one query in every 16th column.
#   These stay with the thread.
# Memory: rows come in slices of 16 elements, and weights are shared as well. Rows longer than 128 are computed in parts
#   of that, with the scores anew for each part.
# Edges: zeros stand for what is beyond the ends, and a weight of 0 for a key beyond the last one. Every thread goes to
#   every barrier. A score of -infinity weighs nothing. If all are, 0 / 0 is NaN.
# ---
# Work items: 16 x m, in groups of 16 x 16

from math import exp, inf, sqrt

from numba import cuda
from numpy import uint64

from py_backends.backend.formats.numba_cuda import widen

SIDE, PARTS = 16, 8
PADDED = SIDE + 1  # threads read neighbours of a column from different banks of shared memory


@cuda.jit(device=True)
def element(a, row, x, rows, d, zero):
    """Of a matrix, or 0 beyond its ends. Numba does not check an unsigned index for counting from the end."""
    return widen(a[uint64(row * d + x)]) if row < rows and x < d else zero


@cuda.jit(device=True)
def score_of(q, k, own, tile, i, j, m, d, n, zero):
    """The product of a thread's query and its key of the tile that begins at key j."""
    row, column, score = cuda.threadIdx.y, cuda.threadIdx.x, zero
    for x in range(0, d, SIDE):
        own[row, column] = element(q, i, x + column, m, d, zero)
        tile[row, column] = element(k, j + row, x + column, n, d, zero)
        cuda.syncthreads()  # slices are complete
        for e in range(SIDE):
            score += own[row, e] * tile[column, e]
        cuda.syncthreads()  # nobody reads them any more
    return score


@cuda.jit(device=True)
def largest_of(scores, larger):
    for e in range(SIDE):
        larger = max(larger, scores[cuda.threadIdx.y, e])
    return larger


@cuda.jit(device=True)
def add_values(weights, tile, value):
    for e in range(SIDE):
        value += weights[cuda.threadIdx.y, e] * tile[e, cuda.threadIdx.x]
    return value


@cuda.jit
def attention(q, k, v, c, m, d, n):
    # Numbers of c's type: 0.0 would make the sums float64, even for float32.
    zero, lowest, root = c.dtype.type(0), c.dtype.type(-inf), sqrt(c.dtype.type(d))
    own = cuda.shared.array((SIDE, PADDED), c.dtype)
    tile = cuda.shared.array((SIDE, PADDED), c.dtype)
    weights = cuda.shared.array((SIDE, PADDED), c.dtype)
    sums = cuda.local.array(PARTS, c.dtype)
    row, column = cuda.threadIdx.y, cuda.threadIdx.x
    for first in range(cuda.blockIdx.y * SIDE, m, cuda.gridDim.y * SIDE):
        for begin in range(0, d, SIDE * PARTS):
            largest, sum = lowest, zero
            for part in range(PARTS):
                sums[part] = zero
            for j in range(0, n, SIDE):
                score = score_of(q, k, own, tile, first + row, j, m, d, n, zero)
                weights[row, column] = score / root if j + column < n else lowest
                cuda.syncthreads()  # all scores are there
                larger = largest_of(weights, largest)
                base = larger if larger > lowest else zero
                kept, weight = exp(largest - base), exp(weights[row, column] - base)
                cuda.syncthreads()  # nobody reads scores any more
                weights[row, column] = weight
                cuda.syncthreads()  # all weights are there
                sum, largest = sum * kept, larger
                for e in range(SIDE):
                    sum += weights[row, e]
                for part in range(PARTS):
                    if begin + part * SIDE < d:
                        tile[row, column] = element(v, j + row, begin + part * SIDE + column, n, d, zero)
                        cuda.syncthreads()  # the slice is complete
                        sums[part] = add_values(weights, tile, sums[part] * kept)
                        cuda.syncthreads()  # nobody reads it any more
            for part in range(PARTS):
                x = begin + part * SIDE + column
                if first + row < m and x < d:
                    c[uint64((first + row) * d + x)] = sums[part] / sum
