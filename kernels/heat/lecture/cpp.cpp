// heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
// Model: C++ in one thread, an iteration for each element. The compiler makes vector instructions of the inner loop.
// Memory: each step reads one array and writes another one, row by row. They change places for the next step, so that
//   the last one writes to c. Both have the boundary from the beginning.
// Edges: the first and last row and column are left as they are. Without an interior, there are no steps.
#include <cstdint>

#include "../../workspace.hpp"

template <typename T>
static bool heat(const T* u, T* c, std::int64_t m, std::int64_t n, std::int64_t steps) {
  Workspace memory;
  T* const other = memory.hold<T>(m * n);
  if (other == nullptr) return false;
  T *before = steps % 2 == 0 ? c : other, *after = steps % 2 == 0 ? other : c;
  for (std::int64_t at = 0; at < m * n; ++at) before[at] = after[at] = u[at];
  for (std::int64_t step = 0; step < steps && m > 2 && n > 2; ++step) {
    for (std::int64_t i = 1; i < m - 1; ++i) {
      const T *up = before + (i - 1) * n, *row = up + n, *down = row + n;
      for (std::int64_t j = 1; j < n - 1; ++j) {
        after[i * n + j] = row[j] / 2 + (up[j] + down[j] + row[j - 1] + row[j + 1]) / 8;
      }
    }
    T* const made = after;
    after = before;
    before = made;
  }
  return true;
}
