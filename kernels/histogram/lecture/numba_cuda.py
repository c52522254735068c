# histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
# Model: a kernel in Python, written for one thread of an NVIDIA GPU, which counts one element. Many threads may meet at
#   a counter. So the update is atomic: it reads, adds and writes, and no other comes between. Blocks cannot wait for
#   each other, so a first kernel sets the counters to 0.
# Memory: neighbouring threads read neighbouring elements of global memory. So the GPU coalesces the accesses of a warp
#   into few transactions. Updates of one counter wait for one another.
# Edges: threads past the last element do nothing. What lies outside of [0, 1), NaN too, is counted nowhere.
# ---
# Work items of clear: 256, in groups of 256
# Work items: n, in groups of 256

from numba import cuda, int64

from py_backends.backend.formats.numba_cuda import widen


@cuda.jit
def clear(a, c, n):
    c[cuda.threadIdx.x] = 0


@cuda.jit
def histogram(a, c, n):
    i = cuda.grid(1)
    if i < n:
        at = widen(a[i]) + 128 if a.dtype.itemsize == 1 else 256 * widen(a[i])
        if at >= 0 and at < 256:
            cuda.atomic.add(c, int64(at), 1)
