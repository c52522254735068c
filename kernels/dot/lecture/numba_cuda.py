# dot: c = the sum of a[i] b[i] for vectors of n elements.
# Model: a kernel in Python, written for one thread of an NVIDIA GPU, which computes one product. Blocks cannot wait for
#   each other. So each adds up its own products, and one block of a second kernel the sums.
# Memory: neighbouring threads read neighbouring elements of global memory. So the GPU coalesces the accesses of a warp
#   into few transactions. A block's sums lie in shared memory: half of the threads add those of the other half, then a
#   quarter, and so on. At each barrier all wait until the others have added.
# Edges: threads past the last element add 0. There are no sums of blocks where n is 0.
# ---
# Work items of add_products: n, in groups of 256
# Work items: 256, in groups of 256
# Scratch: ceil(n / 256) elements of Sum

from numba import cuda

from py_backends.backend.formats.numba_cuda import widen


@cuda.jit(device=True)
def add_up(sums, thread):
    apart = 128
    while apart > 0:
        cuda.syncthreads()
        if thread < apart:
            sums[thread] += sums[thread + apart]
        apart //= 2


@cuda.jit
def add_products(a, b, c, scratch, n):
    sums = cuda.shared.array(256, scratch.dtype)
    i, thread = cuda.grid(1), cuda.threadIdx.x
    # A zero of c's type: 0.0 would make the product a float64, even for float32.
    sums[thread] = widen(a[i]) * widen(b[i]) if i < n else c.dtype.type(0)
    add_up(sums, thread)
    if thread == 0 and i < n:
        scratch[cuda.blockIdx.x] = sums[0]


@cuda.jit
def dot(a, b, c, scratch, n):
    sums = cuda.shared.array(256, scratch.dtype)
    thread = cuda.threadIdx.x
    sums[thread] = 0
    for i in range(thread, (n + 255) // 256, 256):
        sums[thread] += scratch[i]
    add_up(sums, thread)
    if thread == 0:
        c[0] = sums[0]
