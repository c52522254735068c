// scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
// Idea: a tree, in which a block of n elements takes 2 n additions, where log steps take n log n. On the way up, pairs
//   of sums become sums of twice as many elements. On the way down, each gets what comes before it (Blelloch, Prefix
//   sums and their applications, CMU-CS-90-190). A thread has two elements.
// Model: blocks cannot wait for each other. So each computes its own sums, a second kernel what comes before each
//   block, and a third one adds that.
// Memory: a block's sums lie in shared memory. Half of the threads have work in the first step, then a quarter, and so
//   on: with ever larger strides, which meet in ever fewer banks.
// Edges: elements past the last one count as 0. There are no sums of blocks where n is 0.
// ---
// Work items of scan_blocks: ceil(n / 2), in groups of 256
// Work items of scan_sums: 256, in groups of 256
// Work items: ceil(n / 2), in groups of 256
// Scratch: ceil(n / 512) elements of Sum
// Formats: float32, float64
#include "../../formats.hpp"

constexpr int threads = 256, tile = 2 * threads;  // of a block; elements of a block

/// Puts before each of a tile's elements, in place of it, the sum of those before. Returns the sum of all.
template <typename T>
__device__ T scan_block(T* sums) {
  for (int apart = 1; apart < tile; apart *= 2) {
    __syncthreads();
    const int right = (threadIdx.x + 1) * 2 * apart - 1;
    if (right < tile) sums[right] += sums[right - apart];
  }
  __syncthreads();
  const T all = sums[tile - 1];
  __syncthreads();
  if (threadIdx.x == 0) sums[tile - 1] = 0;
  for (int apart = tile / 2; apart > 0; apart /= 2) {
    __syncthreads();
    const int right = (threadIdx.x + 1) * 2 * apart - 1;
    if (right < tile) {
      const T of_left = sums[right - apart];
      sums[right - apart] = sums[right];
      sums[right] += of_left;
    }
  }
  __syncthreads();
  return all;
}

template <typename T>
__global__ void scan_blocks(const T* a, Sum<T>* c, Sum<T>* scratch, long long n) {
  __shared__ T sums[tile];
  const long long begin = (long long)blockIdx.x * tile;
  for (int at = threadIdx.x; at < tile; at += threads) sums[at] = begin + at < n ? a[begin + at] : 0;
  const T all = scan_block<T>(sums);
  for (int at = threadIdx.x; at < tile && begin + at < n; at += threads) c[begin + at] = sums[at] + a[begin + at];
  if (threadIdx.x == 0 && n > 0) scratch[blockIdx.x] = all;
}

template <typename T>
__global__ void scan_sums(const T* a, Sum<T>* c, Sum<T>* scratch, long long n) {
  __shared__ T sums[tile];
  const long long blocks = (n + tile - 1) / tile;
  T before = 0;
  for (long long begin = 0; begin < blocks; begin += tile) {
    for (int at = threadIdx.x; at < tile; at += threads) sums[at] = begin + at < blocks ? scratch[begin + at] : 0;
    const T all = scan_block<T>(sums);
    for (int at = threadIdx.x; at < tile; at += threads) {
      if (begin + at < blocks) scratch[begin + at] = before + sums[at];
    }
    before += all;
    __syncthreads();
  }
}

template <typename T>
__global__ void scan(const T* a, Sum<T>* c, Sum<T>* scratch, long long n) {
  const long long begin = (long long)blockIdx.x * tile;
  for (int at = threadIdx.x; at < tile && begin + at < n; at += threads) c[begin + at] += scratch[blockIdx.x];
}
