// attention in float16 and bfloat16 by tensor cores: the part of cuda.cu for GPUs that have them, from compute
// capability 8.0 on. Only cuda.cu includes this, once, after the file with the instructions.
//
// Idea: a warp has 16 queries. Its scores are sums of products of matrices, as fragments in registers. What a thread
//   has of two such fragments side by side is what it needs of a factor of 16 x 16. So weights are rounded to the
//   inputs' format where they are, and go to their product with the values past shared memory. (Dao, FlashAttention-2,
//   2023.)

namespace {

/// Whether there are tensor cores for elements of T. The emulation has them, unless it is told to do without.
#if (defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800) || defined(WITHOUT_TENSOR_CORES)
template <typename T>
constexpr bool in_warps = false;
#else
template <typename T>
constexpr bool in_warps = sizeof(T) == 2;
#endif

/// Two neighbours, rounded, in one register. The first argument says to which format.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
__device__ __forceinline__ unsigned pair_of(Float16, float first, float second) {
  unsigned pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}
__device__ __forceinline__ unsigned pair_of(BFloat16, float first, float second) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}
#elif !defined(__CUDA_ARCH__)
template <typename T>
unsigned pair_of(T, float first, float second) {
  return narrow<T>(first).bits | static_cast<unsigned>(narrow<T>(second).bits) << 16;
}
#endif

/// A thread's share of its warp's queries, where rows are taken in slices of `columns`.
template <typename T, int columns>
struct WarpShare;

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

template <typename T, int columns>
struct WarpShare {
  using S = Sum<T>;
  using Element = T;
  static constexpr bool weights_in_tile = false;
  static constexpr int keys = 64, slice = columns, width = columns;
  using TileOfQueries = Tile<T, queries, slice>;
  using TileOfKeys = Tile<T, keys, slice>;

  float score[keys / 8][4], sum[columns / 8][4] = {};  // fragments of 16 x 8
  Weights<S> weights[2];                               // of rows g and g + 8
  int row, lane;                                       // where the warp's queries begin, and which thread of it this is

  __device__ __forceinline__ explicit WarpShare(int thread)
      : row(thread / threads_of_warp * 16), lane(thread % threads_of_warp) {}

  __device__ __forceinline__ void begin_scores() {
#pragma unroll unrolled(keys / 8)
    for (int s = 0; s < keys / 8; ++s) {
#pragma unroll unrolled(4)
      for (int e = 0; e < 4; ++e) score[s][e] = 0;
    }
  }

  /// Adds the products of a slice of queries and a slice of keys.
  __device__ __forceinline__ void add_scores(const Chunk<T>* q, const Chunk<T>* k) {
#pragma unroll unrolled(2)
    for (int step = 0; step < slice / 16; ++step) {
      unsigned a[4];
      load_matrices(a, q + TileOfQueries::place(row + lane % 16, 2 * step + lane / 16));
#pragma unroll unrolled(keys / 16)
      for (int s = 0; s < keys / 16; ++s) {
        unsigned b[4];
        load_matrices(b, k + TileOfKeys::place(16 * s + lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2));
        multiply_both(score[2 * s], score[2 * s + 1], a, b);
      }
    }
  }

  /// Turns the scores of the first `left` keys to weights, and those beyond to 0.
  __device__ __forceinline__ void weigh(Chunk<T>*, int left, S scale) {
    if (left < keys) {
#pragma unroll unrolled(keys / 8)
      for (int s = 0; s < keys / 8; ++s) {
#pragma unroll unrolled(4)
        for (int e = 0; e < 4; ++e) {
          if (8 * s + lane % 4 * 2 + e % 2 >= left) score[s][e] = -__builtin_huge_valf();
        }
      }
    }
#pragma unroll unrolled(2)
    for (int half = 0; half < 2; ++half) {
      float (*const of_row)[4] = score;
      S largest = -__builtin_huge_valf();
#pragma unroll unrolled(keys / 4)
      for (int e = 0; e < keys / 4; ++e) largest = max(largest, of_row[e / 2][2 * half + e % 2]);
      const S kept = weights[half].rise(largest_of<4>(largest), scale);
#pragma unroll unrolled(keys / 4)
      for (int e = 0; e < keys / 4; ++e) {
        S& one = of_row[e / 2][2 * half + e % 2];
        one = weights[half].weight(one, scale);
      }
#pragma unroll unrolled(columns / 4)
      for (int e = 0; e < columns / 4; ++e) sum[e / 2][2 * half + e % 2] *= kept;
    }
  }

  /// Adds the products of weights and a slice of values, which is the only one.
  template <int>
  __device__ __forceinline__ void add_values(const Chunk<T>*, const Chunk<T>* v) {
#pragma unroll unrolled(keys / 16)
    for (int step = 0; step < keys / 16; ++step) {
      const float (&first)[4] = score[2 * step], (&second)[4] = score[2 * step + 1];
      const unsigned a[4] = {pair_of(T{}, first[0], first[1]), pair_of(T{}, first[2], first[3]),
                             pair_of(T{}, second[0], second[1]), pair_of(T{}, second[2], second[3])};
#pragma unroll unrolled(columns / 16)
      for (int s = 0; s < columns / 16; ++s) {
        unsigned b[4];
        load_transposed_matrices(b, v + TileOfKeys::place(16 * step + lane % 16, 2 * s + lane / 16));
        multiply_both(sum[2 * s], sum[2 * s + 1], a, b);
      }
    }
  }

  /// Two instructions, of 8 columns each.
  static __device__ __forceinline__ void multiply_both(float (&left)[4], float (&right)[4], const unsigned (&a)[4],
                                                       const unsigned (&b)[4]) {
    multiply_add(T{}, left, a, {b[0], b[1]});
    multiply_add(T{}, right, a, {b[2], b[3]});
  }

  /// Writes the results from row i and column x of c on.
  __device__ __forceinline__ void write(float* c, Size i, Size x, Size m, Size d) const {
#pragma unroll unrolled(2)
    for (int half = 0; half < 2; ++half) {
      const S share = 1 / sum_of<4>(weights[half].total);
      const Size row_of_c = i + row + 8 * half + lane / 4;
#pragma unroll unrolled(columns / 4)
      for (int e = 0; e < columns / 4; ++e) {
        const Size column = x + e / 2 * 8 + lane % 4 * 2 + e % 2;
        if (row_of_c < m && column < d) c[row_of_c * d + column] = sum[e / 2][2 * half + e % 2] * share;
      }
    }
  }
};

#endif

}  // namespace
