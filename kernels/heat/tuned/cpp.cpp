// heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
// Idea: several steps in one pass over the memory, while rows are in the caches (sweeps.hpp).
// Model: C++ in one thread. The directive `simd` makes vector instructions of a row, and needs no OpenMP library.
// Memory: a pass reads one matrix and writes another one. Rows of the steps between stay in the second-level cache.
// Edges: rows and columns of the boundary are copied. The last parts are lower and narrower than the others.
#include "loops.hpp"

template <typename T>
static bool heat(const T* u, T* c, std::int64_t m, std::int64_t n, std::int64_t steps) {
  return passes(u, c, m, n, steps, 1, [](const Pass<T>& pass) {
    for (Size number = 0; number < pass.count(); ++number) {
      if (!sweep<Loops>(pass, pass.part(number))) return false;
    }
    return true;
  });
}
