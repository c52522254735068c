// scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
// Idea: one pass in a chain. A block waits for the sum of all tiles before its own, and hands that on with its own sum
//   (Yan, Long and Zhang, StreamScan, PPoPP 2013). So memory is read once and written once.
// Model: a block takes its tile's number from a ticket, an atomic counter. So all tiles before its own are those of
//   blocks that run or have run, in whatever order blocks begin. A sum is told before its flag, with a fence between
//   them. A first kernel takes back what an earlier launch told.
// Memory: a tile's sums lie in shared memory. Half of the threads have work in the first step, then a quarter, and so
//   on: with ever larger strides, which meet in ever fewer banks.
// Edges: elements past the last one count as 0. Where n is 0, there still is a block, whose tile is empty.
// ---
// Work items of forget: ceil(n / 512) * 4 + 2, in groups of 256
// Work items: ceil(n / 2), in groups of 256
// Scratch: ceil(n / 512) * 4 + 2 elements of Sum
// Formats: float32, float64
#include "../../formats.hpp"

namespace {

using Word = unsigned long long;
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

/// Tells the sum of all elements up to a tile's end, and that it is known.
template <typename S>
__device__ void hand_on(Word* to, S sum) {
  Word bits = 0;
  __builtin_memcpy(&bits, &sum, sizeof sum);
  atomicExch(to, bits);
  __threadfence();
  atomicExch(to + 1, Word(1));
}

/// Waits until a tile's sum is known.
template <typename S>
__device__ S wait_for(Word* from) {
  while (atomicAdd(from + 1, Word(0)) == 0) {
  }
  __threadfence();
  const Word bits = atomicAdd(from, Word(0));
  S sum;
  __builtin_memcpy(&sum, &bits, sizeof sum);
  return sum;
}

}  // namespace

template <typename T>
__global__ void forget(const T* a, Sum<T>* c, Sum<T>* scratch, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < (n + tile - 1) / tile * 4 + 2) scratch[i] = 0;
}

template <typename T>
__global__ void __launch_bounds__(threads) scan(const T* a, Sum<T>* c, Sum<T>* scratch, long long n) {
  using S = Sum<T>;
  __shared__ S sums[tile];
  __shared__ S before_tile;
  __shared__ long long ticket;
  Word* const counter = reinterpret_cast<Word*>(scratch);
  Word* const told = counter + 1;
  const int thread = threadIdx.x;

  if (thread == 0) ticket = atomicAdd(counter, Word(1));
  __syncthreads();
  const long long number = ticket, begin = number * tile;
  for (int at = thread; at < tile; at += threads) sums[at] = begin + at < n ? a[begin + at] : 0;
  const S of_tile = scan_block<S>(sums);

  if (thread == 0 && begin < n) {  // an empty tile tells nothing
    before_tile = number > 0 ? wait_for<S>(told + (number - 1) * 2) : S(0);
    hand_on<S>(told + number * 2, before_tile + of_tile);
  }
  __syncthreads();
  for (long long i = begin + thread; i < begin + tile && i < n; i += threads)
    c[i] = before_tile + sums[i - begin] + a[i];
}
