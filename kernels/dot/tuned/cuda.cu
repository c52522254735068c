// dot: c = the sum of a[i] b[i] for vectors of n elements.
// Idea: a thread adds 16 products, whose factors it loads as chunks of 16 bytes, several before it adds the first. Only
//   many loads on their way at once fill the memory's bandwidth. Threads of a warp hand their sums on by registers,
//   where shared memory takes a barrier for each step.
// Model: blocks cannot wait for each other, so the first kernel leaves a sum of each. The second one adds these up in a
//   fixed order, by one block as large as a block can be.
// Memory: reads a and b once, neighbouring threads neighbouring chunks. A warp leaves one sum in shared memory.
// Edges: the last block multiplies one element at a time, unless it is full. If a vector is not aligned, all blocks do.
//   There are no sums of blocks where n is 0.
// ---
// Work items of add_chunks: ceil(n / 16), in groups of 256
// Work items: 1024, in groups of 1024
// Scratch: ceil(n / 4096) elements of Sum
#include "../../formats.hpp"

namespace {

using Size = long long;
constexpr int warp = 32;
constexpr int threads = 256, elements = 16, products = threads * elements;  // of a block; of a thread; of a block
constexpr int threads_at_last = 1024;

/// What one instruction loads.
template <typename T>
struct alignas(16) Chunk {
  static constexpr int size = 16 / sizeof(T);
  T element[size];
};

__device__ __forceinline__ bool aligned(const void* address) {
  return reinterpret_cast<unsigned long long>(address) % 16 == 0;
}

/// Adds a thread's 16 products of a whole block. Several sums do not wait for one another.
template <typename T>
__device__ __forceinline__ Sum<T> multiply_chunks(const Chunk<T>* a, const Chunk<T>* b) {
  constexpr int chunks = elements / Chunk<T>::size, sums = 4;
  Chunk<T> x[chunks], y[chunks];
#pragma unroll
  for (int e = 0; e < chunks; ++e) {
    x[e] = a[e * threads];
    y[e] = b[e * threads];
  }
  Sum<T> sum[sums] = {};
#pragma unroll
  for (int e = 0; e < elements; ++e) {
    const int of = e / Chunk<T>::size, at = e % Chunk<T>::size;
    sum[e % sums] += widen(x[of].element[at]) * widen(y[of].element[at]);
  }
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/// The sum of a warp, in its first thread. Half of the threads add what the other half has, then a quarter, and so on.
template <typename S>
__device__ __forceinline__ S add_warp(S sum) {
#pragma unroll
  for (int apart = warp / 2; apart > 0; apart /= 2) sum += __shfl_down_sync(0xffffffff, sum, apart);
  return sum;
}

/// The sum of a block, in its first thread: that of its warps' sums. Every warp adds these up, since none may diverge.
template <int warps, typename S>
__device__ __forceinline__ S add_block(S sum) {
  __shared__ S of_warps[warps];
  const int lane = threadIdx.x % warp;
  sum = add_warp(sum);
  if (lane == 0) of_warps[threadIdx.x / warp] = sum;
  __syncthreads();
  return add_warp(lane < warps ? of_warps[lane] : S(0));
}

}  // namespace

template <typename T>
__global__ void __launch_bounds__(threads) add_chunks(const T* a, const T* b, Sum<T>* c, Sum<T>* scratch, long long n) {
  const Size begin = (long long)blockIdx.x * products, end = begin + products;
  Sum<T> sum = 0;
  if (end <= n && aligned(a) && aligned(b)) {
    const auto x = reinterpret_cast<const Chunk<T>*>(a + begin), y = reinterpret_cast<const Chunk<T>*>(b + begin);
    sum = multiply_chunks(x + threadIdx.x, y + threadIdx.x);
  } else {
    const Size last = end < n ? end : n;
#pragma unroll 4
    for (Size i = begin + threadIdx.x; i < last; i += threads) sum += widen(a[i]) * widen(b[i]);
  }
  sum = add_block<threads / warp>(sum);
  if (threadIdx.x == 0 && n > 0) scratch[blockIdx.x] = sum;
}

template <typename T>
__global__ void __launch_bounds__(threads_at_last)
    dot(const T* a, const T* b, Sum<T>* c, Sum<T>* scratch, long long n) {
  Sum<T> sum = 0;
#pragma unroll 4
  for (Size i = threadIdx.x; i * products < n; i += threads_at_last) sum += scratch[i];
  sum = add_block<threads_at_last / warp>(sum);
  if (threadIdx.x == 0) *c = sum;
}
