// scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
// Model: a kernel written for one thread of an NVIDIA GPU, which has one element. Blocks cannot wait for each other. So
//   each computes its own sums, a second kernel what comes before each block, and a third one adds that.
// Memory: neighbouring threads read and write neighbouring elements of global memory. So the GPU coalesces the accesses
//   of a warp into few transactions. A block's sums lie in shared memory. There each thread adds the sum before it, then
//   the one two places before, then four, and so on (Hillis and Steele). At each barrier all wait until the others have
//   read.
// Edges: threads past the last element add 0. There are no sums of blocks where n is 0.
// ---
// Work items of scan_blocks: n, in groups of 256
// Work items of scan_sums: 256, in groups of 256
// Work items: n, in groups of 256
// Scratch: ceil(n / 256) elements of Sum
#include "../../formats.hpp"

template <typename S>
__device__ void scan_block(S own, S* sums) {
  sums[threadIdx.x] = own;
  __syncthreads();
  for (long long apart = 1; apart < 256; apart *= 2) {
    const S before = threadIdx.x < apart ? S(0) : sums[threadIdx.x - apart];
    __syncthreads();
    sums[threadIdx.x] += before;
    __syncthreads();
  }
}

template <typename T>
__global__ void scan_blocks(const T* a, Sum<T>* c, Sum<T>* scratch, long long n) {
  __shared__ Sum<T> sums[256];
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  scan_block<Sum<T>>(i < n ? widen(a[i]) : 0, sums);
  if (i < n) c[i] = sums[threadIdx.x];
  if (threadIdx.x == 0 && n > 0) scratch[blockIdx.x] = sums[255];
}

template <typename T>
__global__ void scan_sums(const T* a, Sum<T>* c, Sum<T>* scratch, long long n) {
  __shared__ Sum<T> sums[256];
  Sum<T> before = 0;
  for (long long i = threadIdx.x; (i - threadIdx.x) * 256 < n; i += 256) {
    scan_block<Sum<T>>(i * 256 < n ? scratch[i] : 0, sums);
    if (i * 256 < n) scratch[i] = before + sums[threadIdx.x];
    before += sums[255];
    __syncthreads();
  }
}

template <typename T>
__global__ void scan(const T* a, Sum<T>* c, Sum<T>* scratch, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (blockIdx.x > 0 && i < n) c[i] += scratch[blockIdx.x - 1];
}
