// vecadd: c[i] = a[i] + b[i] for vectors of n elements.
// Model: one directive divides the loop, an iteration for each element, among threads that share memory.
// Memory: every thread reads and writes its own chunk of a, b and c, in order.
// Edges: none; OpenMP gives the threads chunks of almost equal length.
#include <cstdint>

#include "../../formats.hpp"

template <typename T>
static void vecadd(const T* a, const T* b, T* c, std::int64_t n) {
#pragma omp parallel for
  for (std::int64_t i = 0; i < n; ++i) c[i] = narrow<T>(widen(a[i]) + widen(b[i]));
}
