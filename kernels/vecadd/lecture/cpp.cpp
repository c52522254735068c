// vecadd: c[i] = a[i] + b[i] for vectors of n elements.
// Model: C++ in one thread, an iteration for each element. The compiler may make vector instructions of the loop.
// Memory: reads a and b once and writes c once, in order.
// Edges: none; the loop ends at n.
#include <cstdint>

#include "../../formats.hpp"

template <typename T>
static void vecadd(const T* a, const T* b, T* c, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) c[i] = narrow<T>(widen(a[i]) + widen(b[i]));
}
