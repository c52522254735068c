// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Idea: a tile of c stays in vector registers while p runs (blocked.hpp); bands of c that are one tile high follow each
//   other, and all read the same block of b from the second-level cache.
// Model: C++ in one thread; the directive `simd` makes vector instructions of the loops over columns, and needs no
//   OpenMP library.
// Memory: b is packed into panels that the tile reads in order, a block at a time; a band of a is copied into the
//   first-level cache. (Goto and van de Geijn, Anatomy of high-performance matrix multiplication, ACM TOMS 34, 2008, with
//   the parts of a and b exchanged.) Small or thin matrices are not packed; of the
//   thinnest, rows of a are multiplied with columns of b.
// Edges: the last panel of b is filled up with zeros, and only the columns that exist are written to c; the last band
//   has tiles of its own height.
#include <cstdint>

#include "blocked.hpp"

namespace {

/// Matrices that are read where they are: little would be read twice, or all stays in the caches whatever the order.
template <typename T>
bool multiply_in_place(const T* a, const T* b, T* c, Size m, Size n, Size k) {
  constexpr Size height = Tile<T>::height, width = Tile<T>::width;
  const Size ragged = n / width * width;  // where the panel begins that has to be filled up
  T* const panel = workspace.hold<T>(Band<T>::depth * width);
  if (panel == nullptr) return false;
  Size p0 = 0;
  do {
    const Size depth = least(Band<T>::depth, k - p0);
    const Size block = m > height ? columns_of_block<T>(depth) : width;
    if (ragged < n) pack_panel(b + p0 * n + ragged, n, depth, n - ragged, panel);
    for (Size j0 = 0; j0 < n; j0 += block) {
      for (Size i = 0; i < m; i += height) {
        for (Size j = j0; j < least(j0 + block, n); j += width) {
          const bool whole = j < ragged;
          const Operands<T> in = {a + i * k + p0, k, whole ? b + p0 * n + j : panel, whole ? n : width};
          multiply_rows<T, false>(least(height, m - i), in, depth, {c + i * n + j, n, least(width, n - j), p0 > 0});
        }
      }
    }
    p0 += depth;
  } while (p0 < k);
  return true;
}

/// Few columns leave a tile empty: here lanes run along p instead, and every element of c is a sum of its own.
template <typename T>
bool multiply_narrow(const T* a, const T* b, T* c, Size m, Size n, Size k) {
  T* const memory = workspace.hold<T>(n * k);
  if (memory == nullptr) return false;
  const T* const columns = n == 1 ? b : transpose(b, k, n, memory);
  for (Size i = 0; i < m; ++i) {
    for (Size j = 0; j < n; ++j) c[i * n + j] = product(a + i * k, columns + j * k, k);
  }
  return true;
}

}  // namespace

template <typename T>
static bool matmul(const T* a, const T* b, T* c, std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr Size height = Tile<T>::height, width = Tile<T>::width;
  if (m == 0 || n == 0) return true;
  const Plan plan = Plan::of<T>(m, n, k);
  if (plan.narrow) return multiply_narrow(a, b, c, m, n, k);
  if (!plan.pack) return multiply_in_place(a, b, c, m, n, k);
  const Size most_depth = parts(k, parts(k, Band<T>::depth));
  const Size block = least(columns_of_block<T>(most_depth), parts(n, width) * width);
  T* const packed = workspace.hold<T>(most_depth * block);
  if (packed == nullptr) return false;
  for (Size j0 = 0; j0 < n; j0 += block) {
    const Size columns = least(block, n - j0);
    for (Size p0 = 0; p0 < k; p0 += most_depth) {
      const Size depth = least(most_depth, k - p0);
      for (Size j = 0; j < columns; j += width) {
        pack_panel(b + p0 * n + j0 + j, n, depth, least(width, columns - j), packed + j * depth);
      }
      for (Size i = 0; i < m; i += height) {
        const Size rows = least(height, m - i);
        Band<T> band;
        pack_band(a + i * k + p0, k, rows, depth, band);
        multiply_band(band, rows, packed, columns, depth, c + i * n + j0, n, p0 > 0);
      }
    }
  }
  return true;
}
