// dot: c = the sum of a[i] b[i] for vectors of n elements.
// Model: a kernel written for one thread of an NVIDIA GPU, which computes one product. Blocks cannot wait for each
//   other. So each adds up its own products, and one block of a second kernel the sums.
// Memory: neighbouring threads read neighbouring elements of global memory. So the GPU coalesces the accesses of a warp
//   into few transactions. A block's sums lie in shared memory: half of the threads add those of the other half, then a
//   quarter, and so on. At each barrier all wait until the others have added.
// Edges: threads past the last element add 0. There are no sums of blocks where n is 0.
// ---
// Work items of add_products: n, in groups of 256
// Work items: 256, in groups of 256
// Scratch: ceil(n / 256) elements of Sum
#include "../../formats.hpp"

template <typename T>
__device__ void add_up(Sum<T> own, Sum<T>* sums, Sum<T>* to) {
  sums[threadIdx.x] = own;
  for (long long apart = 128; apart > 0; apart /= 2) {
    __syncthreads();
    if (threadIdx.x < apart) sums[threadIdx.x] += sums[threadIdx.x + apart];
  }
  if (threadIdx.x == 0) *to = sums[0];
}

template <typename T>
__global__ void add_products(const T* a, const T* b, Sum<T>* c, Sum<T>* scratch, long long n) {
  __shared__ Sum<T> sums[256];
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (n > 0) add_up<T>(i < n ? widen(a[i]) * widen(b[i]) : 0, sums, scratch + blockIdx.x);
}

template <typename T>
__global__ void dot(const T* a, const T* b, Sum<T>* c, Sum<T>* scratch, long long n) {
  __shared__ Sum<T> sums[256];
  Sum<T> sum = 0;
  for (long long i = threadIdx.x; i * 256 < n; i += 256) sum += scratch[i];
  add_up<T>(sum, sums, c);
}
