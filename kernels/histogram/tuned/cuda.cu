// histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
// Idea: a block has eight tables in shared memory, one a warp. So only threads of a warp meet at a counter. A thread
//   counts 64 elements, which it loads as chunks of 16 bytes, four before it counts the first. Only many loads on their
//   way at once fill the memory's bandwidth.
// Model: all threads set the tables to 0, and then count. Then each adds up one counter of all tables, and adds the sum
//   to that of all, by an atomic update. At each barrier all wait for one another. A first kernel sets c to 0.
// Memory: reads a once, neighbouring threads neighbouring chunks. Tables are 257 counters apart, so that those of one bin
//   lie in different banks.
// Edges: the last block counts one element at a time, unless it is full. If a is not aligned, all blocks do. What lies
//   outside of [0, 1), NaN too, is counted nowhere.
// ---
// Work items of clear: 256, in groups of 256
// Work items: ceil(n / 64), in groups of 256
#include "../../formats.hpp"

namespace {

using Size = long long;
constexpr int bins = 256, threads = 256, tables = 8, apart = bins + 1;
constexpr int each = 64, elements = threads * each;  // of a thread; of a block

/// What one instruction loads.
template <typename T>
struct alignas(16) Chunk {
  static constexpr int size = 16 / sizeof(T);
  T element[size];
};

template <typename T>
__device__ __forceinline__ void count(T x, int* table) {
  const Sum<T> at = sizeof(T) == 1 ? widen(x) + 128 : bins * widen(x);
  if (at >= 0 && at < bins) atomicAdd(table + static_cast<int>(at), 1);
}

/// Counts a thread's elements of a whole block.
template <typename T>
__device__ __forceinline__ void count_chunks(const Chunk<T>* a, int* table) {
  constexpr int chunks = each / Chunk<T>::size, at_once = chunks < 4 ? chunks : 4;
  for (int first = 0; first < chunks; first += at_once) {
    Chunk<T> x[at_once];
#pragma unroll
    for (int e = 0; e < at_once; ++e) x[e] = a[(first + e) * threads];
#pragma unroll
    for (int e = 0; e < at_once * Chunk<T>::size; ++e) count(x[e / Chunk<T>::size].element[e % Chunk<T>::size], table);
  }
}

}  // namespace

template <typename T>
__global__ void clear(const T* a, int* c, long long n) {
  c[threadIdx.x] = 0;
}

template <typename T>
__global__ void __launch_bounds__(threads) histogram(const T* a, int* c, long long n) {
  __shared__ int table[tables * apart];
  for (int at = threadIdx.x; at < tables * apart; at += threads) table[at] = 0;
  __syncthreads();
  int* const own = table + static_cast<int>(threadIdx.x) / 32 * apart;
  const Size begin = (long long)blockIdx.x * elements, end = begin + elements < n ? begin + elements : n;
  if (begin + elements == end && reinterpret_cast<unsigned long long>(a) % 16 == 0) {
    count_chunks(reinterpret_cast<const Chunk<T>*>(a + begin) + threadIdx.x, own);
  } else {
#pragma unroll 4
    for (Size i = begin + threadIdx.x; i < end; i += threads) count(a[i], own);
  }
  __syncthreads();
  int sum = 0;
#pragma unroll
  for (int of = 0; of < tables; ++of) sum += table[of * apart + threadIdx.x];
  if (sum > 0) atomicAdd(c + threadIdx.x, sum);
}
