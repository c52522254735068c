# layer_norm: y[i, j] = (x[i, j] - mean of row i) r[i], r[i] = 1 / sqrt(variance of row i + epsilon), for m x n.
# ---
# Work items: m, in groups of 1
import triton
import triton.language as tl

TILE = tl.constexpr(256)


@triton.jit
def layer_norm(x, y, r, m, n, epsilon):
    i, j = tl.program_id(0).to(tl.int64) + tl.zeros((TILE,), tl.int64), tl.arange(0, TILE)
    total = tl.zeros((TILE,), x.dtype.element_ty)
    for first in range(0, n, TILE):
        inside = (first + j < n) & (i < m)
        total += tl.load(x + i * n + first + j, inside, 0)
    mean = tl.sum(total, 0) / n
    squares = tl.zeros((TILE,), x.dtype.element_ty)
    for first in range(0, n, TILE):
        inside = (first + j < n) & (i < m)
        apart = tl.where(inside, tl.load(x + i * n + first + j, inside, 0) - mean, 0)
        squares += apart * apart
    scale = 1 / tl.sqrt(tl.sum(squares, 0) / n + epsilon)
    for first in range(0, n, TILE):
        inside = (first + j < n) & (i < m)
        tl.store(y + i * n + first + j, (tl.load(x + i * n + first + j, inside, 0) - mean) * scale, inside)
    tl.store(r + i, scale + tl.zeros((TILE,), x.dtype.element_ty), (j < 1) & (i < m))
