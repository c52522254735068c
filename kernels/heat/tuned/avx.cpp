// heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
// Idea: several steps in one pass over the memory, while rows are in the caches (sweeps.hpp).
// Model: one instruction adds, or multiplies and adds, in all lanes of a register. Threads take parts of a pass, and at
//   its end wait for one another. Small matrices stay on one thread, since waking others takes longer.
// Memory: a pass reads one matrix and writes another one. Rows of the steps between stay in the second-level cache.
// Edges: what is left after a row's last full register is computed in a part of one. Rows and columns of the boundary
//   are copied. The last parts are lower and narrower than the others.
#include <cstdint>

#include "../../simd.hpp"
#include "sweeps.hpp"

namespace {

struct Registers {
  /// Elements of a row from those above, beside and below.
  template <typename T>
  static void compute(const T* up, const T* row, const T* down, T* after, Size count) {
    using V = Simd<T>;
    const auto half = V::broadcast(T(1) / 2), eighth = V::broadcast(T(1) / 8);
    Size j = 0;
    for (; j + V::lanes <= count; j += V::lanes) {
      const auto beside = V::add(V::load(row + j - 1), V::load(row + j + 1));
      const auto sum = V::add(V::add(V::load(up + j), V::load(down + j)), beside);
      V::store(after + j, V::multiply_add(V::load(row + j), half, V::multiply(sum, eighth)));
    }
    if (j == count) return;
    const Size rest = count - j;
    const auto beside = V::add(V::load_part(row + j - 1, rest), V::load_part(row + j + 1, rest));
    const auto sum = V::add(V::add(V::load_part(up + j, rest), V::load_part(down + j, rest)), beside);
    V::store_part(after + j, V::multiply_add(V::load_part(row + j, rest), half, V::multiply(sum, eighth)), rest);
  }
};

}  // namespace

template <typename T>
static bool heat(const T* u, T* c, std::int64_t m, std::int64_t n, std::int64_t steps) {
  return passes(u, c, m, n, steps, [](const Pass<T>& pass) {
    bool enough_memory = true;
#pragma omp parallel for schedule(dynamic) reduction(&& : enough_memory) if (pass.worth_sharing())
    for (Size number = 0; number < pass.count(); ++number) {
      enough_memory = sweep<Registers>(pass, pass.part(number)) && enough_memory;
    }
    return enough_memory;
  });
}
