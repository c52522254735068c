# heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
# Idea: up to eight steps a launch. A block goes down the rows. As soon as a step has a row, the next step computes the
#   row above it. So a launch reads and writes every element once, for all of its steps.
# Model: a thread has a column, and of each step the last two elements of its own: with the one that comes, these are
#   three rows. Those beside are its neighbours'. They exchange them in shared memory, at one barrier a row.
# Memory: neighbouring threads read and write neighbours of a row, which the GPU coalesces. Shared memory has a row of
#   each step twice: one is read while the next one is written.
# Edges: around its 240 columns and 128 rows, a block computes as many more as there are steps to come. Their elements
#   beyond the matrix are 0, and count for nothing. Where the grid would be too high, blocks go on in strides of its
#   height. Every thread goes to every barrier.
# ---
# Work items: ceil(n / 240) * 256 x ceil(m / 128), in groups of 256 x 1
# Repeat: steps, up to 8 a launch

from numba import cuda
from numpy import uint64

MOST_STEPS, THREADS, ROWS = 8, 256, 128
WIDTH = THREADS + 2  # of a row in shared memory
COLUMNS = THREADS - 2 * MOST_STEPS


@cuda.jit
def heat(u, c, m, n, steps):
    # Numbers of c's type: 0.5 would make the sum a float64, even for float32.
    zero, half, eighth = c.dtype.type(0), c.dtype.type(0.5), c.dtype.type(0.125)
    shared = cuda.shared.array((2, MOST_STEPS, WIDTH), u.dtype)
    above, last = cuda.local.array(MOST_STEPS, u.dtype), cuda.local.array(MOST_STEPS, u.dtype)
    x = cuda.threadIdx.x + 1
    j = cuda.blockIdx.x * COLUMNS + cuda.threadIdx.x - MOST_STEPS
    inside, edge = 0 <= j < n, j in (0, n - 1)
    own = inside and MOST_STEPS <= cuda.threadIdx.x < MOST_STEPS + COLUMNS
    for top in range(cuda.blockIdx.y * ROWS, m, cuda.gridDim.y * ROWS):
        bottom = min(m, top + ROWS)
        for step in range(MOST_STEPS):
            above[step] = last[step] = zero
        for i in range(max(0, top - steps), bottom + steps):
            # Numba does not check an unsigned index for counting from the end.
            next = u[uint64(i * n + j)] if inside and i < m else zero
            now = i % 2
            for step in range(steps):
                row = i - step - 1
                sum = above[step] + next + shared[1 - now, step, x - 1] + shared[1 - now, step, x + 1]
                stays = edge or row in (0, m - 1)
                after = last[step] if stays else half * last[step] + eighth * sum
                above[step], last[step] = last[step], next
                shared[now, step, x] = next
                next = after
            row = i - steps
            if own and top <= row < bottom:
                c[uint64(row * n + j)] = next
            cuda.syncthreads()  # the rows that were written are complete, and nobody reads the others any more
