// transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
// Model: one thread. As many registers as they have lanes hold a tile of a, a row each. Instructions interleave the lanes
//   of two registers, rows r and r + lanes / 2. After two rounds for four lanes, four for sixteen, each holds a column.
// Memory: reads a and writes c a register at a time. Narrower formats are widened to the lanes of a register, and back.
// Edges: rows and columns after the last full tile are moved one element at a time.
#include <cstdint>

#include "../../simd.hpp"

template <typename T>
static void transpose(const T* a, T* c, std::int64_t m, std::int64_t n) {
  using V = Simd<T>;
  constexpr std::int64_t lanes = V::lanes, half = lanes / 2;
  const std::int64_t tiled_m = m - m % lanes, tiled_n = n - n % lanes;
  for (std::int64_t i = 0; i < tiled_m; i += lanes) {
    for (std::int64_t j = 0; j < tiled_n; j += lanes) {
      typename V::Register x[lanes], y[lanes];
      for (std::int64_t r = 0; r < lanes; ++r) x[r] = V::load(a + (j + r) * m + i);
      for (std::int64_t round = 1; round < lanes; round *= 2) {
        for (std::int64_t r = 0; r < half; ++r) V::interleave(x[r], x[r + half], y[2 * r], y[2 * r + 1]);
        for (std::int64_t r = 0; r < lanes; ++r) x[r] = y[r];
      }
      for (std::int64_t r = 0; r < lanes; ++r) V::store(c + (i + r) * n + j, x[r]);
    }
  }
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = i < tiled_m ? tiled_n : 0; j < n; ++j) c[i * n + j] = a[j * m + i];
  }
}
