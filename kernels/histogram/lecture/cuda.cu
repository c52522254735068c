// histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
// Model: a kernel written for one thread of an NVIDIA GPU, which counts one element. Many threads may meet at a counter.
//   So the update is atomic: it reads, adds and writes, and no other comes between. Blocks cannot wait for each other,
//   so a first kernel sets the counters to 0.
// Memory: neighbouring threads read neighbouring elements of global memory. So the GPU coalesces the accesses of a warp
//   into few transactions. Updates of one counter wait for one another.
// Edges: threads past the last element do nothing. What lies outside of [0, 1), NaN too, is counted nowhere.
// ---
// Work items of clear: 256, in groups of 256
// Work items: n, in groups of 256
#include "../../formats.hpp"

template <typename T>
__global__ void clear(const T* a, int* c, long long n) {
  c[threadIdx.x] = 0;
}

template <typename T>
__global__ void histogram(const T* a, int* c, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const Sum<T> at = sizeof(T) == 1 ? widen(a[i]) + 128 : 256 * widen(a[i]);
  if (at >= 0 && at < 256) atomicAdd(c + (long long)at, 1);
}
