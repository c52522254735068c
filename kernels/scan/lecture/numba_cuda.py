# scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
# Model: a kernel in Python, written for one thread of an NVIDIA GPU, which has one element. Blocks cannot wait for each
#   other. So each computes its own sums, a second kernel what comes before each block, and a third one adds that.
# Memory: neighbouring threads read and write neighbouring elements of global memory. So the GPU coalesces the accesses
#   of a warp into few transactions. A block's sums lie in shared memory. There each thread adds the sum before it, then
#   the one two places before, then four, and so on (Hillis and Steele). At each barrier all wait until the others have
#   read.
# Edges: threads past the last element add 0. There are no sums of blocks where n is 0.
# ---
# Work items of scan_blocks: n, in groups of 256
# Work items of scan_sums: 256, in groups of 256
# Work items: n, in groups of 256
# Scratch: ceil(n / 256) elements of Sum

from numba import cuda

from py_backends.backend.formats.numba_cuda import widen


@cuda.jit(device=True)
def scan_block(sums, thread, zero):
    cuda.syncthreads()
    apart = 1
    while apart < 256:
        before = sums[thread - apart] if thread >= apart else zero
        cuda.syncthreads()
        sums[thread] += before
        cuda.syncthreads()
        apart *= 2


@cuda.jit
def scan_blocks(a, c, scratch, n):
    sums = cuda.shared.array(256, scratch.dtype)
    # A zero of c's type: 0.0 would make the sum a float64, even for float32.
    i, thread, zero = cuda.grid(1), cuda.threadIdx.x, c.dtype.type(0)
    sums[thread] = widen(a[i]) if i < n else zero
    scan_block(sums, thread, zero)
    if i < n:
        c[i] = sums[thread]
        scratch[cuda.blockIdx.x] = sums[255]


@cuda.jit
def scan_sums(a, c, scratch, n):
    sums = cuda.shared.array(256, scratch.dtype)
    thread, blocks, zero = cuda.threadIdx.x, (n + 255) // 256, c.dtype.type(0)
    before = zero
    for first in range(0, blocks, 256):
        i = first + thread
        sums[thread] = scratch[i] if i < blocks else zero
        scan_block(sums, thread, zero)
        if i < blocks:
            scratch[i] = before + sums[thread]
        before += sums[255]
        cuda.syncthreads()


@cuda.jit
def scan(a, c, scratch, n):
    i = cuda.grid(1)
    if 256 <= i < n:
        c[i] += scratch[i // 256 - 1]
