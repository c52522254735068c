// attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
// Idea: a block has 64 queries, and reads a tile of keys and their values once for all of them. Scores and sums stay in
//   its threads' registers. Where a larger score comes, sums are made smaller, once a tile. (Dao and others,
//   FlashAttention, 2022.)
//   16-bit formats are multiplied by tensor cores, where a GPU has them: cuda_warp_share.hpp. What follows is for the
//   others, and for these elsewhere.
// Model: a thread has the scores of 4 queries with every eighth key of a tile, and the sums of these queries in an
//   eighth of the columns. Its 7 neighbours have the others.
// Work items: 2 * m, in groups of 128
// Memory: tiles are copied to shared memory, values while scores are computed. Threads read from there in vectors of 16
//   bytes. Weights are exchanged there as well, in the place of keys.
// Edges: zeros stand for what is beyond the ends. Keys beyond the last one have the score -infinity. Rows longer than
//   128 are read in slices and computed in parts, with the scores anew for each part. A score of -infinity weighs
//   nothing. If all are, 0 / 0 is NaN.
#include "../../formats.hpp"

#include "../../matmul/tuned/cuda_blocks.hpp"
#include "../../matmul/tuned/cuda_warp_matrices.hpp"

#include "cuda_tiles.hpp"

#include "cuda_warp_share.hpp"

namespace {

/// A thread's share of a block's queries, with so many columns of values: rows are taken in slices of 256 bytes.
template <typename T, int columns>
struct ThreadShare {
  using S = Sum<T>;
  using Element = S;
  static constexpr bool weights_in_tile = true;
  static constexpr int slice = 256 / sizeof(S), keys = slice, width = columns;
  using TileOfQueries = Tile<S, queries, slice>;
  using TileOfKeys = Tile<S, keys, slice>;
  using TileOfWeights = Tile<S, queries, keys>;
  static constexpr int neighbours = 8, rows = threads / neighbours;
  static constexpr int down = queries / rows, across = keys / neighbours, size = Chunk<S>::size;
  static constexpr int chunks = width / size / neighbours, chunks_of_slice = slice / size / neighbours;

  S score[down][across], sum[down][chunks][size] = {};
  Weights<S> weights[down];
  int row, column;

  __device__ __forceinline__ explicit ThreadShare(int thread) : row(thread / neighbours), column(thread % neighbours) {}

  __device__ __forceinline__ void begin_scores() {
#pragma unroll unrolled(down)
    for (int r = 0; r < down; ++r) {
#pragma unroll unrolled(across)
      for (int s = 0; s < across; ++s) score[r][s] = 0;
    }
  }

  /// Adds the products of a slice of queries and a slice of keys.
  __device__ __forceinline__ void add_scores(const Chunk<S>* q, const Chunk<S>* k) {
#pragma unroll 1
    for (int chunk = 0; chunk < TileOfKeys::chunks; ++chunk) {
      Chunk<S> own[down];
#pragma unroll unrolled(down)
      for (int r = 0; r < down; ++r) own[r] = q[TileOfQueries::place(row + r * rows, chunk)];
#pragma unroll unrolled(across)
      for (int s = 0; s < across; ++s) {
        const Chunk<S> key = k[TileOfKeys::place(column + s * neighbours, chunk)];
#pragma unroll unrolled(down)
        for (int r = 0; r < down; ++r) {
#pragma unroll unrolled(size)
          for (int e = 0; e < size; ++e) score[r][s] += own[r].element[e] * key.element[e];
        }
      }
    }
  }

  /// Writes the weights of the first `left` keys to a tile, and 0 for those beyond.
  __device__ __forceinline__ void weigh(Chunk<S>* tile, int left, S scale) {
#pragma unroll unrolled(down)
    for (int r = 0; r < down; ++r) {
      S largest = -S(__builtin_huge_valf());
#pragma unroll unrolled(across)
      for (int s = 0; s < across; ++s) {
        if (column + s * neighbours >= left) score[r][s] = -S(__builtin_huge_valf());
        largest = max(largest, score[r][s]);
      }
      const S kept = weights[r].rise(largest_of<neighbours>(largest), scale);
#pragma unroll unrolled(across)
      for (int s = 0; s < across; ++s) {
        const int key = column + s * neighbours;
        tile[TileOfWeights::place(row + r * rows, key / size)].element[key % size] =
            weights[r].weight(score[r][s], scale);
      }
#pragma unroll unrolled(chunks)
      for (int x = 0; x < chunks; ++x) {
#pragma unroll unrolled(size)
        for (int e = 0; e < size; ++e) sum[r][x][e] *= kept;
      }
    }
  }

  /// Adds the products of weights and the slice of values that has this number.
  template <int number>
  __device__ __forceinline__ void add_values(const Chunk<S>* tile, const Chunk<S>* v) {
#pragma unroll 1
    for (int chunk = 0; chunk < keys / size; ++chunk) {
      Chunk<S> own[down];
#pragma unroll unrolled(down)
      for (int r = 0; r < down; ++r) own[r] = tile[TileOfWeights::place(row + r * rows, chunk)];
#pragma unroll unrolled(size)
      for (int key = 0; key < size; ++key) {
#pragma unroll unrolled(chunks_of_slice)
        for (int x = 0; x < chunks_of_slice; ++x) {
          const Chunk<S> value = v[TileOfKeys::place(chunk * size + key, column + x * neighbours)];
#pragma unroll unrolled(down)
          for (int r = 0; r < down; ++r) {
#pragma unroll unrolled(size)
            for (int e = 0; e < size; ++e) {
              sum[r][number * chunks_of_slice + x][e] += own[r].element[key] * value.element[e];
            }
          }
        }
      }
    }
  }

  /// Writes the results from row i and column x of c on.
  __device__ __forceinline__ void write(S* c, Size i, Size x, Size m, Size d) const {
#pragma unroll unrolled(down)
    for (int r = 0; r < down; ++r) {
      const S share = 1 / sum_of<neighbours>(weights[r].total);
      const Size row_of_c = i + row + r * rows;
#pragma unroll unrolled(chunks)
      for (int s = 0; s < chunks; ++s) {
#pragma unroll unrolled(size)
        for (int e = 0; e < size; ++e) {
          const Size column_of_c = x + (column + s * neighbours) * size + e;
          if (row_of_c < m && column_of_c < d) c[row_of_c * d + column_of_c] = sum[r][s][e] * share;
        }
      }
    }
  }
};

/// Blocks that a multiprocessor is to run, as far as their registers allow. Before compute capability 8.0 it has shared
/// memory for one.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
template <typename T>
constexpr int blocks_at_once = 1;
#else
template <typename T>
constexpr int blocks_at_once = sizeof(Sum<T>) == 8 ? 2 : 3;
#endif

/// A share for rows of at most 64 elements, or of any length.
template <typename T, int columns, bool by_warps>
struct ShareOf {
  using Type = ThreadShare<T, columns>;
};
template <typename T, int columns>
struct ShareOf<T, columns, true> {
  using Type = WarpShare<T, columns>;
};
template <typename T, int columns>
using Share = typename ShareOf<T, columns, in_warps<T>>::Type;

/// The tiles of a block in shared memory.
template <typename Share>
struct Places {
  static constexpr int of_queries = Share::TileOfQueries::size;
  static constexpr int of_weights =
      Share::weights_in_tile ? queries * Share::keys / Chunk<typename Share::Element>::size : 0;
  static constexpr int of_keys = of_weights > Share::TileOfKeys::size ? of_weights : Share::TileOfKeys::size;
  static constexpr int size = of_queries + of_keys + Share::TileOfKeys::size;
};

/// Adds the products of weights and all slices of values from column x on, of which the first is there or arrives.
template <typename Share, int number = 0, typename T>
__device__ __forceinline__ void add_all_values(Share& share, const Chunk<typename Share::Element>* weights,
                                               Chunk<typename Share::Element>* tile, const Matrix<T>& v, Size first,
                                               Size x, int thread) {
  share.template add_values<number>(weights, tile);
  if constexpr ((number + 1) * Share::slice < Share::width) {
    x += Share::slice;
    if (x >= v.width) return;
    __syncthreads();  // nobody reads the slice before any more
    v.template start<typename Share::TileOfKeys>(tile, first, x, thread);
    wait_for_copies<0>();
    __syncthreads();  // the slice is complete
    add_all_values<Share, number + 1>(share, weights, tile, v, first, x, thread);
  }
}

/// Computes the results of the queries from row i on.
template <typename Share, typename T>
__device__ __forceinline__ void attend(int thread, Chunk<typename Share::Element>* shared, const Matrix<T>& q,
                                       const Matrix<T>& k, const Matrix<T>& v, Sum<T>* c, Size i) {
  using Places = Places<Share>;
  Chunk<typename Share::Element>* const of_k = shared + Places::of_queries;
  Chunk<typename Share::Element>* const of_v = of_k + Places::of_keys;
  const Size d = q.width, n = k.height;
  const Sum<T> scale = Sum<T>(1.4426950408889634) / sqrt(Sum<T>(d));  // of powers of 2 in place of e
  const auto start = [&](Size first, Size x) {
    if (first == 0 || d > Share::slice) q.template start<typename Share::TileOfQueries>(shared, i, x, thread);
    k.template start<typename Share::TileOfKeys>(of_k, first, x, thread);
  };
  for (Size column = 0; column < d; column += Share::width) {
    Share share(thread);
    start(0, 0);
    for (Size first = 0; first < n; first += Share::keys) {
      share.begin_scores();
      for (Size x = 0; x < d; x += Share::slice) {
        if (x > 0) {
          __syncthreads();  // nobody reads the slices before any more
          start(first, x);
        }
        wait_for_copies<0>();
        __syncthreads();  // slices are complete, and nobody reads values of the tile before any more
        if (x + Share::slice >= d) v.template start<typename Share::TileOfKeys>(of_v, first, column, thread);
        share.add_scores(shared, of_k);
      }
      if constexpr (Share::weights_in_tile) __syncthreads();  // nobody reads keys any more, where weights come
      share.weigh(of_k, least(n - first, Share::keys), scale);
      wait_for_copies<0>();
      __syncthreads();  // values and weights are complete, and nobody reads keys any more
      const bool more = first + Share::keys < n;
      if constexpr (!Share::weights_in_tile) {
        if (more) start(first + Share::keys, 0);
      }
      add_all_values(share, of_k, of_v, v, first, column, thread);
      if constexpr (Share::weights_in_tile) {
        __syncthreads();  // nobody reads weights any more, where keys come
        if (more) start(first + Share::keys, 0);
      }
    }
    share.write(c, i, column, q.height, d);
  }
}

}  // namespace

template <typename T>
__global__ void __launch_bounds__(threads, blocks_at_once<T>)
    attention(const T* q, const T* k, const T* v, Sum<T>* c, long long m, long long d, long long n) {
  using Narrow = Share<T, 64>;
  using Wide = Share<T, 128>;
  using Element = typename Wide::Element;
  constexpr int size = Places<Narrow>::size > Places<Wide>::size ? Places<Narrow>::size : Places<Wide>::size;
  __shared__ Chunk<Element> shared[size];
  const Size i = (long long)blockIdx.x * queries;
  if (i >= m) return;
  constexpr int neighbours = Chunk<Element>::size, bytes = neighbours * sizeof(T);
  const bool whole = d % neighbours == 0 && aligned(q, bytes) && aligned(k, bytes) && aligned(v, bytes);
  const Matrix<T> of_q = {q, m, d, whole}, of_k = {k, n, d, whole}, of_v = {v, n, d, whole};
  if (d <= 64) return attend<Narrow>(threadIdx.x, shared, of_q, of_k, of_v, c, i);
  attend<Wide>(threadIdx.x, shared, of_q, of_k, of_v, c, i);
}
