// What both ways of cuda.cu share: tiles of matrices in shared memory, and how scores become weights. Only cuda.cu
// includes this, once, after ../../matmul/tuned/cuda_blocks.hpp.

namespace {

/// Queries of a block.
constexpr int queries = 64;

/// How often to unroll a loop of so many passes. On a GPU whole loops are, since registers have no addresses. In the
/// emulation they lie in memory, and its compiler would take minutes for this.
constexpr int unrolled(int passes) {
#if defined(__CUDA_ARCH__)
  return passes;
#else
  return passes > 0;
#endif
}

/// 2^x, where it is no subnormal. That of 0 is exactly 1.
__device__ __forceinline__ double power_of_2(double x) { return exp2(x); }
__device__ __forceinline__ float power_of_2(float x) {
#if defined(__CUDA_ARCH__)
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
#else
  return exp2(x);
#endif
}

/// The largest of what `count` neighbours of a warp have, or its sum.
template <int count, typename S>
__device__ __forceinline__ S largest_of(S x) {
#pragma unroll unrolled(5)
  for (int apart = 1; apart < count; apart *= 2) x = max(x, __shfl_xor_sync(0xffffffffu, x, apart));
  return x;
}
template <int count, typename S>
__device__ __forceinline__ S sum_of(S x) {
#pragma unroll unrolled(5)
  for (int apart = 1; apart < count; apart *= 2) x += __shfl_xor_sync(0xffffffffu, x, apart);
  return x;
}

/// A query's largest score so far, and the sum of the weights that a thread has computed.
template <typename S>
struct Weights {
  S largest = -S(__builtin_huge_valf()), total = 0;
  S base = 0;  // what is taken off scores: -infinity less itself were NaN

  /// Takes more scores in, of which this is the largest. Returns what sums are to be multiplied by.
  __device__ __forceinline__ S rise(S score, S scale) {
    const S larger = max(largest, score);
    base = larger == -S(__builtin_huge_valf()) ? S(0) : larger;
    const S kept = power_of_2((largest - base) * scale);
    largest = larger;
    total *= kept;
    return kept;
  }
  /// Of the largest score it is exactly 1, since the difference is taken first.
  __device__ __forceinline__ S weight(S score, S scale) {
    const S weight = power_of_2((score - base) * scale);
    total += weight;
    return weight;
  }
};

template <typename T>
using Chunk = Vector<T>;

/// A tile of a matrix in shared memory: rows of so many elements, in chunks of 16 bytes.
template <typename Element, int rows_, int columns_>
struct Tile {
  using T = Element;
  static constexpr int rows = rows_, columns = columns_, chunks = columns / Chunk<T>::size, size = rows * chunks;
  static constexpr int rows_at_once = threads / chunks, copies = rows / rows_at_once;
  static_assert(chunks % 8 == 0 && rows_at_once * chunks == threads && copies * rows_at_once == rows, "");

  /// Where a chunk lies. In 8 neighbouring rows those of one column are permuted differently, so that they lie in
  /// different banks.
  static __device__ __forceinline__ int place(int row, int chunk) { return row * chunks + (chunk ^ (row & 7)); }
};

/// Starts to copy neighbours to shared memory, or zeros where they are not `there`. Where they are widened on their
/// way, or have less than 4 bytes, they have arrived when this returns.
template <typename T, int count>
__device__ __forceinline__ void start_neighbours(Neighbours<T, count>* to, const Neighbours<T, count>* from,
                                                 bool there) {
  if constexpr (sizeof(*to) >= 4)
    start_copy(to, from, there);
  else
    *to = there ? *from : Neighbours<T, count>{};
}
template <typename S, typename T, int count>
__device__ __forceinline__ void start_neighbours(Neighbours<S, count>* to, const Neighbours<T, count>* from,
                                                 bool there) {
  *to = widened(there ? *from : Neighbours<T, count>{});
}

/// A matrix in global memory, of which all rows begin at multiples of a chunk's size, or not.
template <typename T>
struct Matrix {
  const T* elements;
  Size height, width;
  bool whole;  // chunks

  /// Starts to copy the tile that begins at a row and column, with zeros in place of what is beyond the ends.
  template <typename Tile>
  __device__ __forceinline__ void start(Chunk<typename Tile::T>* tile, Size row, Size column) const {
    constexpr int size = Chunk<typename Tile::T>::size;
    const int thread = threadIdx.x, down = thread / Tile::chunks, chunk = thread % Tile::chunks;
    const int rows_left = least(height - row, Tile::rows) - down;
    const int columns_left = least(width - column, Tile::columns) - chunk * size;
    const T* from = elements + (row + down) * width + column + chunk * size;
    if (whole) {
#pragma unroll unrolled(4)
      for (int s = 0; s < Tile::copies; ++s) {
        const bool there = s * Tile::rows_at_once < rows_left && columns_left > 0;
        start_neighbours(tile + Tile::place(down + s * Tile::rows_at_once, chunk),
                         reinterpret_cast<const Neighbours<T, size>*>(from), there);
        from += Tile::rows_at_once * width;
      }
    } else {
#pragma unroll 1
      for (int s = 0; s < Tile::copies; ++s) {
        copy(tile + Tile::place(down + s * Tile::rows_at_once, chunk), from,
             s * Tile::rows_at_once < rows_left ? columns_left : 0);
        from += Tile::rows_at_once * width;
      }
    }
    end_group_of_copies();
  }

  /// Starts to copy a chunk element by element, of which the first `there` are in the matrix, if any.
  template <typename S, int count>
  static __device__ __forceinline__ void copy(Neighbours<S, count>* to, const T* from, int there) {
#pragma unroll unrolled(count)
    for (int e = 0; e < count; ++e) {
      start_neighbours(reinterpret_cast<Neighbours<S, 1>*>(to->element + e),
                       reinterpret_cast<const Neighbours<T, 1>*>(from + e), e < there);
    }
  }
};

}  // namespace
