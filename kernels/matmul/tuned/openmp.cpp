// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Idea: a tile of c stays in vector registers while p runs (blocked.hpp). Threads take bands of c that are one tile
//   high.
// Model: directives alone. `simd` makes vector instructions of the loops over columns. `for` first divides the packing
//   of b among threads, then the bands. A thread takes the next band whenever it is free.
// Memory: b is packed into panels that the tile reads in order, in blocks that stay in the second-level cache. A thread
//   copies its band of a into the first-level cache. (Goto and van de Geijn, Anatomy of high-performance matrix
//   multiplication, ACM TOMS 34, 2008, with the roles of a and b exchanged.) Small or thin matrices are not packed,
//   except to widen a format to floats. For the thinnest, rows of a are multiplied by columns of b.
// Edges: the last panel of b is filled up with zeros, and only the columns that exist are written to c. Where one
//   register holds those, the tile is one register wide. The last band has tiles of its own height.
#include <omp.h>

#include <cstdint>

#include "blocked.hpp"

namespace {

/// Columns of b that are packed at once: some megabytes of the last-level cache.
constexpr Size most_columns = 4096;

}  // namespace

template <typename T>
static bool matmul(const T* a, const T* b, Sum<T>* c, std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr Size width = Tile<T>::width;
  for (Size i = 0; k == 0 && i < m * n; ++i) c[i] = 0;
  if (m == 0 || n == 0 || k == 0) return true;
  const Plan plan = Plan::of<T>(m, n, k);
  if (plan.narrow) return multiply_narrow(a, b, c, m, n, k, plan.share);
  if constexpr (as_packed<T>) {
    if (!plan.pack) return multiply_in_place(a, b, c, m, n, k, plan.share);
  }
  const Size threads = plan.share ? omp_get_max_threads() : 1;
  const Size bands = parts(parts(m, Tile<T>::height), threads) * threads;  // as many for each thread
  const Size height = parts(m, bands);
  const Size most_depth = parts(k, parts(k, Band<T>::depth)), block = columns_of_block<T>(most_depth);
  Packed<T>* const packed = workspace.hold<Packed<T>>(most_depth * least(most_columns, parts(n, width) * width));
  if (packed == nullptr) return false;
#pragma omp parallel if (plan.share)
  for (Size j0 = 0; j0 < n; j0 += most_columns) {
    const Size columns = least(most_columns, n - j0);
    for (Size p0 = 0; p0 < k; p0 += most_depth) {
      const Size depth = least(most_depth, k - p0);
#pragma omp for schedule(static)
      for (Size j = 0; j < columns; j += width) {
        pack_panel(b + p0 * n + j0 + j, n, depth, least(width, columns - j), packed + j * depth);
      }
#pragma omp for collapse(2) schedule(dynamic)
      for (Size j = 0; j < columns; j += block) {
        for (Size i = 0; i < m; i += height) {
          const Size rows = least(height, m - i);
          Band<T> band;
          pack_band(a + i * k + p0, k, rows, depth, band);
          Sum<T>* const corner = c + i * n + j0 + j;
          multiply_band(band, rows, packed + j * depth, least(block, columns - j), depth, corner, n, p0 > 0);
        }
      }
    }
  }
  return true;
}
