// scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
// Model: a kernel written for one thread of an NVIDIA GPU, which has one element. Blocks cannot wait for each other. So
//   each computes its own sums, one block of a second kernel the sums of their last ones, and a third kernel adds
//   these.
// Memory: neighbouring threads read and write neighbouring elements of global memory. So the GPU coalesces the accesses
//   of a warp into few transactions. A block's sums lie in shared memory. There each thread adds the sum before it,
//   then the one two places before, then four, and so on (Hillis and Steele). At each barrier all wait until the others
//   have read.
// Edges: threads past the last element add 0, and so do blocks past the last full one.
// ---
// Work items of scan_blocks: n, in groups of 256
// Work items of scan_sums: 256, in groups of 256
// Work items: n, in groups of 256
// Scratch: ceil(n / 65536) * 256 elements of Sum
#include "../../formats.hpp"

template <typename S>
__device__ S scan_block(S sum) {
  __shared__ S sums[256];
  for (long long apart = 1; apart < 256; apart *= 2) {
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x >= apart) sum += sums[threadIdx.x - apart];
    __syncthreads();
  }
  return sum;
}

template <typename T>
__global__ void scan_blocks(const T* a, Sum<T>* c, Sum<T>* scratch, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const Sum<T> sum = scan_block<Sum<T>>(i < n ? widen(a[i]) : 0);
  if (i < n) c[i] = sum;
}

template <typename T>
__global__ void scan_sums(const T* a, Sum<T>* c, Sum<T>* scratch, long long n) {
  for (long long i = threadIdx.x; (i - threadIdx.x) * 256 < n; i += 256) {
    const Sum<T> before = threadIdx.x == 0 && i > 0 ? scratch[i - 1] : 0;
    scratch[i] = scan_block<Sum<T>>(before + (i * 256 + 255 < n ? c[i * 256 + 255] : 0));
    __syncthreads();
  }
}

template <typename T>
__global__ void scan(const T* a, Sum<T>* c, Sum<T>* scratch, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (blockIdx.x > 0 && i < n) c[i] += scratch[blockIdx.x - 1];
}
