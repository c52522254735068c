// vecadd: c = a + b for vectors of n elements.
// Model: one directive shares the iterations of a loop among threads on common memory.
// Memory: every thread reads and writes its own stretch of a, b and c, in order.
// Edges: none; OpenMP gives the threads stretches of almost equal length.
#include <cstdint>

template <typename T>
static void vecadd(const T* a, const T* b, T* c, std::int64_t n) {
#pragma omp parallel for
  for (std::int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
