// heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
// Idea: several steps in one pass over the memory, while rows are in the caches (sweeps.hpp).
// Model: one directive divides the parts of a pass among threads, and another one a row among the lanes of registers.
//   At the end of a pass all threads wait for one another. Small matrices stay on one thread, since waking others takes
//   longer.
// Memory: a pass reads one matrix and writes another one. Rows of the steps between stay in the second-level cache.
// Edges: rows and columns of the boundary are copied. The last parts are lower and narrower than the others.
#include <omp.h>

#include "loops.hpp"

template <typename T>
static bool heat(const T* u, T* c, std::int64_t m, std::int64_t n, std::int64_t steps) {
  const Size threads = worth_sharing(m, n, steps) ? omp_get_max_threads() : 1;
  return passes(u, c, m, n, steps, threads, [threads](const Pass<T>& pass) {
    bool enough_memory = true;
#pragma omp parallel for schedule(dynamic) reduction(&& : enough_memory) if (threads > 1)
    for (Size number = 0; number < pass.count(); ++number) {
      enough_memory = sweep<Loops>(pass, pass.part(number)) && enough_memory;
    }
    return enough_memory;
  });
}
