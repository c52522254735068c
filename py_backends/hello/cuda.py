# CUDA: a kernel is the code of one thread. A grid of blocks of threads runs it.
import cupy as cp
import numpy as np

# 1. A GPU has many streaming multiprocessors, which run the blocks.
gpu = cp.cuda.runtime.getDeviceProperties(0)
print(gpu["name"].decode(), "has", gpu["multiProcessorCount"], "processors")

# 2. A thread computes one element. It finds which by its block and its place.
#    The check of the bounds is not on the slide, and is needed: see step 4.
source = """extern "C" __global__
void vecadd(float* a, float* b, float* c, int* block, int* thread, long long n) {
    long long i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i >= n) return;
    c[i] = a[i] + b[i];
    block[i] = blockIdx.x;
    thread[i] = threadIdx.x;
}"""
kernel = cp.RawKernel(source, "vecadd")

# 3. The host copies the inputs to the GPU's memory, and asks for room there.
n = 10
on_host = np.arange(n, dtype=np.float32), np.full(n, 0.5, np.float32)
a, b = (cp.asarray(each) for each in on_host)
c, block, thread = (cp.empty(n, kind) for kind in (np.float32, np.int32, np.int32))

# 4. A grid of 3 blocks of 4 threads covers 10 elements: 2 threads too many.
size = 4
grid = (n + size - 1) // size
print("grid", grid, "block", size, "threads", grid * size)
kernel((grid,), (size,), (a, b, c, block, thread, np.int64(n)))

# 5. The host copies back, which waits until the kernel has ended.
print("block ", *block.get())
print("thread", *thread.get())
print("c     ", *c.get())
print("as NumPy adds:", np.array_equal(c.get(), sum(on_host)))
