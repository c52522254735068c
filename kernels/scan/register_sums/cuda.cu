// scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
// Idea: sums in registers. A thread adds up 16 elements, one by one. Only its last sum goes through a warp, in log
//   steps, and only the last sum of a warp through shared memory, with one barrier.
// Model: a block takes its tile's number from a ticket, an atomic counter. So all tiles before its own are those of
//   blocks that run or have run, in whatever order blocks begin. A sum is told before its flag, with a fence between
//   them. A first kernel takes back what an earlier launch told.
// Memory: neighbouring threads read and write neighbouring elements. From shared memory a thread takes 16 elements that
//   follow each other, and threads of a warp hand their sums on by registers.
// Edges: elements past the last one count as 0. Where n is 0, there still is a block, whose tile is empty.
// ---
// Work items of forget: ceil(n / 4096) * 4 + 2, in groups of 256
// Work items: ceil(n / 16), in groups of 256
// Scratch: ceil(n / 4096) * 4 + 2 elements of Sum
// Formats: float32, float64
#include "../../formats.hpp"

namespace {

using Word = unsigned long long;
constexpr unsigned all_lanes = 0xffffffff;
constexpr int warp = 32;
constexpr int threads = 256, elements = 16, tile = threads * elements;  // of a block; of a thread; of a block

/// How many elements of shared memory hold a tile. After each 16 there is a gap: else a warp would meet in few banks.
constexpr int padded = tile + threads;
__device__ __forceinline__ int place(int at) { return at + at / elements; }

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

/// The sum of this lane and all lanes before it in the warp, in log steps.
template <typename S>
__device__ __forceinline__ S scan_warp(S sum) {
  const int lane = threadIdx.x % warp;
#pragma unroll
  for (int apart = 1; apart < warp; apart *= 2) {
    const S before = __shfl_up_sync(all_lanes, sum, apart);
    if (lane >= apart) sum += before;
  }
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
  __shared__ S sums[padded];
  __shared__ S of_warps[threads / warp];
  __shared__ S before_tile;
  __shared__ long long ticket;
  Word* const counter = reinterpret_cast<Word*>(scratch);
  Word* const told = counter + 1;
  const int thread = threadIdx.x, lane = thread % warp;

  if (thread == 0) ticket = atomicAdd(counter, Word(1));
  __syncthreads();
  const long long number = ticket, begin = number * tile;
#pragma unroll
  for (int e = 0; e < elements; ++e) {
    const int at = e * threads + thread;
    sums[place(at)] = begin + at < n ? widen(a[begin + at]) : S(0);
  }
  __syncthreads();

  S sum[elements];
#pragma unroll
  for (int e = 0; e < elements; ++e) sum[e] = (e > 0 ? sum[e - 1] : S(0)) + sums[place(thread * elements + e)];
  const S of_warp = scan_warp(sum[elements - 1]);
  if (lane == warp - 1) of_warps[thread / warp] = of_warp;
  S before = __shfl_up_sync(all_lanes, of_warp, 1);
  if (lane == 0) before = 0;
  __syncthreads();
  S of_tile = 0;
#pragma unroll
  for (int other = 0; other < threads / warp; ++other) {
    if (other == thread / warp) before += of_tile;
    of_tile += of_warps[other];
  }

  if (thread == 0 && begin < n) {  // an empty tile tells nothing
    before_tile = number > 0 ? wait_for<S>(told + (number - 1) * 2) : S(0);
    hand_on<S>(told + number * 2, before_tile + of_tile);
  }
  __syncthreads();
  before += before_tile;
#pragma unroll
  for (int e = 0; e < elements; ++e) sums[place(thread * elements + e)] = before + sum[e];
  __syncthreads();
#pragma unroll
  for (int e = 0; e < elements; ++e) {
    const int at = e * threads + thread;
    if (begin + at < n) c[begin + at] = sums[place(at)];
  }
}
