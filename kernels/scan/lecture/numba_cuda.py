# scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
# Model: a kernel in Python, written for one thread of an NVIDIA GPU, which has one element. Blocks cannot wait for each
#   other. So each computes its own sums, one block of a second kernel the sums of their last ones, and a third kernel
#   adds these.
# Memory: neighbouring threads read and write neighbouring elements of global memory. So the GPU coalesces the accesses
#   of a warp into few transactions. A block's sums lie in shared memory. There each thread adds the sum before it, then
#   the one two places before, then four, and so on (Hillis and Steele). At each barrier all wait until the others have
#   read.
# Edges: threads past the last element add 0, and so do blocks past the last full one.
# ---
# Work items of scan_blocks: n, in groups of 256
# Work items of scan_sums: 256, in groups of 256
# Work items: n, in groups of 256
# Scratch: ceil(n / 65536) * 256 elements of Sum

from numba import cuda

from py_backends.backend.formats.numba_cuda import widen


@cuda.jit(device=True)
def scan_block(own, sums, thread):
    for apart in (1, 2, 4, 8, 16, 32, 64, 128):
        sums[thread] = own
        cuda.syncthreads()
        if thread >= apart:
            own += sums[thread - apart]
        cuda.syncthreads()
    return own


@cuda.jit
def scan_blocks(a, c, scratch, n):
    sums, zero = cuda.shared.array(256, c.dtype), c.dtype.type(0)
    i = cuda.grid(1)
    sum = scan_block(widen(a[i]) if i < n else zero, sums, cuda.threadIdx.x)
    if i < n:
        c[i] = sum


@cuda.jit
def scan_sums(a, c, scratch, n):
    # A zero of c's type: 0.0 would make the sum a float64, even for float32.
    sums, zero = cuda.shared.array(256, c.dtype), c.dtype.type(0)
    for i in range(cuda.threadIdx.x, (n + 65535) // 65536 * 256, 256):
        before = scratch[i - 1] if i % 256 == 0 and i > 0 else zero
        own = c[i * 256 + 255] if i * 256 + 255 < n else zero
        scratch[i] = scan_block(before + own, sums, cuda.threadIdx.x)
        cuda.syncthreads()


@cuda.jit
def scan(a, c, scratch, n):
    i = cuda.grid(1)
    if 256 <= i < n:
        c[i] += scratch[i // 256 - 1]
