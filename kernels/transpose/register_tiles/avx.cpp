// transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
// Idea: a block is a tile in vector registers. So a line of a is read, and one of c written, by one instruction in
//   place of sixteen.
// Model: instructions interleave the lanes of two registers, rows r and r + lanes / 2. After two rounds for four lanes,
//   four for sixteen, each register holds a column. One directive divides the rows of tiles among threads.
// Memory: a line is read, or written, all at once where rows begin with lines. Then it does not matter whether rows take
//   each other's places in the caches.
// Edges: rows and columns after the last full tile are moved one element at a time.
// ---
// Formats: float32, float64
#include <cstdint>

#include "../../simd.hpp"

namespace {

/// Moves the tile whose first elements these are.
template <typename T>
void move_tile(const T* a, T* c, std::int64_t m, std::int64_t n) {
  using V = Simd<T>;
  constexpr std::int64_t lanes = V::lanes, half = lanes / 2;
  typename V::Register x[lanes], y[lanes];
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < lanes; ++r) x[r] = V::load(a + r * m);
#pragma GCC unroll 4
  for (std::int64_t round = 1; round < lanes; round *= 2) {
#pragma GCC unroll 8
    for (std::int64_t r = 0; r < half; ++r) V::interleave(x[r], x[r + half], y[2 * r], y[2 * r + 1]);
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < lanes; ++r) x[r] = y[r];
  }
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < lanes; ++r) V::store(c + r * n, x[r]);
}

}  // namespace

template <typename T>
static void transpose(const T* a, T* c, std::int64_t m, std::int64_t n) {
  constexpr std::int64_t lanes = Simd<T>::lanes;
  const std::int64_t tiled_m = m - m % lanes, tiled_n = n - n % lanes;
#pragma omp parallel for
  for (std::int64_t i = 0; i < tiled_m; i += lanes) {
    for (std::int64_t j = 0; j < tiled_n; j += lanes) move_tile(a + j * m + i, c + i * n + j, m, n);
  }
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = i < tiled_m ? tiled_n : 0; j < n; ++j) c[i * n + j] = a[j * m + i];
  }
}
