// heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
// Model: an algorithm of the standard library calls a function for each row of a step. Its policy, `par`, allows it to
//   divide the rows among threads that share memory. It returns when all rows are done: the next step reads them.
// Memory: each step reads one array and writes another one, row by row. They change places for the next step, so that
//   the last one writes to c. Both have the boundary from the beginning.
// Edges: the first and last row and column are left as they are. Without an interior, there are no steps.
#include <algorithm>
#include <cstdint>
#include <execution>
#include <utility>

#include "../../indices.hpp"
#include "../../workspace.hpp"

template <typename T>
static bool heat(const T* u, T* c, std::int64_t m, std::int64_t n, std::int64_t steps) {
  Workspace memory;
  T* const other = memory.hold<T>(m * n);
  if (other == nullptr) return false;
  std::copy(std::execution::par_unseq, u, u + m * n, c);
  std::copy(std::execution::par_unseq, u, u + m * n, other);
  T *before = steps % 2 == 0 ? c : other, *after = steps % 2 == 0 ? other : c;
  for (std::int64_t step = 0; step < steps && m > 2 && n > 2; ++step) {
    std::for_each(std::execution::par, Index(1), Index(m - 1), [=](std::int64_t i) {
      const T *up = before + (i - 1) * n, *row = up + n, *down = row + n;
      for (std::int64_t j = 1; j < n - 1; ++j) {
        after[i * n + j] = row[j] / 2 + (up[j] + down[j] + row[j - 1] + row[j + 1]) / 8;
      }
    });
    std::swap(before, after);
  }
  return true;
}
