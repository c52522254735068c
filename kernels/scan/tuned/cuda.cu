// scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
// Idea: one pass with decoupled look-back (Merrill and Garland, Single-pass parallel prefix scan with decoupled
//   look-back, NVIDIA NVR-2016-002). A block tells the sum of its tile to all, and adds what the tiles before it told,
//   back to one that knows what it ends with. So it need not wait for the one before.
// Model: a block takes its tile's number from a ticket, an atomic counter. So all tiles before its own are those of
//   blocks that run or have run, in whatever order blocks begin. What a tile tells is a word with a state, written and
//   read by one atomic operation: no fence is needed. A sum of 8 bytes takes two words, and counts when both have the
//   same state. A first kernel takes back what an earlier launch told.
// Memory: neighbouring threads read and write neighbouring elements. From shared memory a thread takes 16 elements that
//   follow each other, and threads of a warp hand their sums on by registers.
// Edges: elements past the last one count as 0. Where n is 0, there still is a block, whose tile is empty.
// ---
// Work items of forget: ceil(n / 4096) * 2 + 2, in groups of 256
// Work items: ceil(n / 16), in groups of 256
// Scratch: ceil(n / 4096) * 2 + 2 elements of Sum
// Order: any, as it adds the sums of more or fewer tiles. So two calls may differ in their last bits.
#include "../../formats.hpp"

namespace {

using Word = unsigned long long;
constexpr unsigned all_lanes = 0xffffffff;
constexpr int warp = 32;
constexpr int threads = 256, elements = 16, tile = threads * elements;  // of a block; of a thread; of a block
/// What a tile tells: nothing yet, its own sum, or the sum of all elements up to its end.
constexpr unsigned nothing = 0, own = 1, up_to_end = 2;

/// How many elements of shared memory hold a tile. After each 16 there is a gap: else a warp would meet in few banks.
constexpr int padded = tile + threads;
__device__ __forceinline__ int place(int at) { return at + at / elements; }

/// The words that a tile tells a sum by: the upper half of each is the state, the lower one 32 bits of the sum.
template <typename S>
struct Told {
  static constexpr int words = sizeof(S) / 4;

  static __device__ void tell(Word* to, unsigned state, S sum) {
    unsigned half[words];
    __builtin_memcpy(half, &sum, sizeof sum);
    for (int word = 0; word < words; ++word) atomicExch(to + word, Word(state) << 32 | half[word]);
  }

  /// Waits until a tile has told something, which is returned with its state.
  static __device__ unsigned hear(Word* from, S& sum) {
    unsigned half[words], state[words];
    do {
      for (int word = 0; word < words; ++word) {
        const Word told = atomicAdd(from + word, Word(0));
        state[word] = unsigned(told >> 32);
        half[word] = unsigned(told);
      }
    } while (state[0] == nothing || state[0] != state[words - 1]);
    __builtin_memcpy(&sum, half, sizeof sum);
    return state[0];
  }
};

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

/// What comes before a tile. The lanes of a warp look at 32 tiles at a time, the first lane at the nearest.
template <typename S>
__device__ S look_back(Word* told, long long number) {
  const int lane = threadIdx.x % warp;
  S before = 0;
  for (long long last = number - 1; last >= 0; last -= warp) {
    S sum = 0;
    // Before the first tile there is nothing.
    const unsigned state = lane > last ? up_to_end : Told<S>::hear(told + (last - lane) * Told<S>::words, sum);
    const unsigned ends = __ballot_sync(all_lanes, state == up_to_end);  // a bit a lane, the lowest is the nearest
    if (lane >= __ffs(ends) && ends != 0) sum = 0;
#pragma unroll
    for (int apart = warp / 2; apart > 0; apart /= 2) sum += __shfl_xor_sync(all_lanes, sum, apart);
    before += sum;
    if (ends != 0) break;
  }
  return before;
}

}  // namespace

template <typename T>
__global__ void forget(const T* a, Sum<T>* c, Sum<T>* scratch, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < (n + tile - 1) / tile * 2 + 2) scratch[i] = 0;
}

template <typename T>
__global__ void __launch_bounds__(threads) scan(const T* a, Sum<T>* c, Sum<T>* scratch, long long n) {
  using S = Sum<T>;
  __shared__ S sums[padded];
  __shared__ S of_warps[threads / warp];
  __shared__ S before_tile;
  __shared__ long long ticket;
  Word* const counter = reinterpret_cast<Word*>(scratch);
  Word* const told = counter + Told<S>::words;
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

  if (thread < warp && begin < n) {  // an empty tile tells nothing
    Word* const here = told + number * Told<S>::words;
    if (lane == 0) Told<S>::tell(here, number > 0 ? own : up_to_end, of_tile);
    const S found = look_back<S>(told, number);
    if (lane == 0 && number > 0) Told<S>::tell(here, up_to_end, found + of_tile);
    if (lane == 0) before_tile = found;
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
