// attention without tensor cores: the part of cuda.cu for float32 and float64, and for GPUs that have none. Only
// cuda.cu includes this, once, after cuda_tiles.hpp.
//
// Idea: a thread has the scores of 4 queries with every eighth key of a tile, and the sums of these queries in an
//   eighth of the columns. What it reads once from shared memory, in vectors of 16 bytes, it multiplies 4 or 8 times.
//   Its 7 neighbours have the others. They exchange weights in shared memory, in the place of keys.

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

}  // namespace
