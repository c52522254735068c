// heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
// Model: one thread. One instruction adds, or multiplies and adds, in all lanes of a register (SSE needs two). The lanes
//   are neighbouring elements of a row.
// Memory: each step reads one array and writes another one, a vector register at a time. They change places for the
//   next step, so that the last one writes to c. Both have the boundary from the beginning.
// Edges: what is left after a row's last full register is computed one element at a time. The boundary is left as it is.
//   Without an interior, there are no steps.
#include <cstdint>

#include "../../simd.hpp"
#include "../../workspace.hpp"

template <typename T>
static bool heat(const T* u, T* c, std::int64_t m, std::int64_t n, std::int64_t steps) {
  using V = Simd<T>;
  Workspace memory;
  T* const other = memory.hold<T>(m * n);
  if (other == nullptr) return false;
  T *before = steps % 2 == 0 ? c : other, *after = steps % 2 == 0 ? other : c;
  for (std::int64_t at = 0; at < m * n; ++at) before[at] = after[at] = u[at];
  const auto half = V::broadcast(T(1) / 2), eighth = V::broadcast(T(1) / 8);
  for (std::int64_t step = 0; step < steps && m > 2 && n > 2; ++step) {
    for (std::int64_t i = 1; i < m - 1; ++i) {
      const T *up = before + (i - 1) * n, *row = up + n, *down = row + n;
      std::int64_t j = 1;
      for (; j + V::lanes < n; j += V::lanes) {
        const auto above_below = V::add(V::load(up + j), V::load(down + j));
        const auto sum = V::add(above_below, V::add(V::load(row + j - 1), V::load(row + j + 1)));
        V::store(after + i * n + j, V::multiply_add(V::load(row + j), half, V::multiply(sum, eighth)));
      }
      for (; j < n - 1; ++j) after[i * n + j] = row[j] / 2 + (up[j] + down[j] + row[j - 1] + row[j + 1]) / 8;
    }
    T* const made = after;
    after = before;
    before = made;
  }
  return true;
}
