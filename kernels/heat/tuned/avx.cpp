// heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
// Idea: several steps in one pass over the memory, while rows are in the caches (sweeps.hpp).
// Model: one instruction adds, or multiplies and adds, in all lanes of a register. Threads take parts of a pass, and at
//   its end wait for one another. Small matrices stay on one thread, since waking others takes longer.
// Memory: a pass reads one matrix and writes another one. Rows of the steps between stay in the second-level cache.
// Edges: what is left before a row's first cache line, and after its last full register, is computed in a part of one.
//   Rows and columns of the boundary are copied. The last parts are lower and narrower than the others.
#include "avx_rows.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

template <typename T>
static bool heat(const T* u, T* c, std::int64_t m, std::int64_t n, std::int64_t steps) {
#if defined(_OPENMP)
  const Size threads = worth_sharing(m, n, steps) ? omp_get_max_threads() : 1;
#else
  const Size threads = 1;
#endif
  return passes(u, c, m, n, steps, threads, [threads](const Pass<T>& pass) {
    bool enough_memory = true;
#pragma omp parallel for schedule(dynamic) reduction(&& : enough_memory) if (threads > 1)
    for (Size number = 0; number < pass.count(); ++number) {
      enough_memory = sweep<Registers>(pass, pass.part(number)) && enough_memory;
    }
    return enough_memory;
  });
}
