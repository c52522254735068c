// transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
// Model: C++ in one thread: two loops, as in the definition.
// Memory: writes c in order, and reads a by columns, whose elements lie m apart.
// Edges: none; both loops end at their sizes.
#include <cstdint>

template <typename T>
static void transpose(const T* a, T* c, std::int64_t m, std::int64_t n) {
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) c[i * n + j] = a[j * m + i];
  }
}
