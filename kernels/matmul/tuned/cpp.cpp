// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Idea: a tile of c stays in vector registers while p runs (blocked.hpp). Bands of c that are one tile high follow each
//   other. They all read the same block of b from the second-level cache.
// Model: C++ in one thread. The directive `simd` makes vector instructions of the loops over columns, and needs no
//   OpenMP library.
// Memory: b is packed into panels that the tile reads in order, a block at a time. A band of a is copied into the
//   first-level cache. (Goto and van de Geijn, Anatomy of high-performance matrix multiplication, ACM TOMS 34, 2008,
//   with the roles of a and b exchanged.) Small or thin matrices are not packed, except to widen a format to floats.
//   For the thinnest, rows of a are multiplied by columns of b.
// Edges: the last panel of b is filled up with zeros, and only the columns that exist are written to c. Where one
//   register holds those, the tile is one register wide. The last band has tiles of its own height.
#include <cstdint>

#include "blocked.hpp"

template <typename T>
static bool matmul(const T* a, const T* b, Sum<T>* c, std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr Size height = Tile<T>::height, width = Tile<T>::width;
  for (Size i = 0; k == 0 && i < m * n; ++i) c[i] = 0;
  if (m == 0 || n == 0 || k == 0) return true;
  const Plan plan = Plan::of<T>(m, n, k);
  if (plan.narrow) return multiply_narrow(a, b, c, m, n, k, false);
  if constexpr (as_packed<T>) {
    if (!plan.pack) return multiply_in_place(a, b, c, m, n, k, false);
  }
  const Size most_depth = parts(k, parts(k, Band<T>::depth));
  const Size block = least(columns_of_block<T>(most_depth), parts(n, width) * width);
  Packed<T>* const packed = workspace.hold<Packed<T>>(most_depth * block);
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
