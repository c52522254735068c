// transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
// Model: one directive divides the rows of c among threads that share memory.
// Memory: every thread writes its rows of c in order, and reads its columns of a, whose elements lie m apart.
// Edges: none; both loops end at their sizes.
#include <cstdint>

template <typename T>
static void transpose(const T* a, T* c, std::int64_t m, std::int64_t n) {
#pragma omp parallel for
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) c[i * n + j] = a[j * m + i];
  }
}
