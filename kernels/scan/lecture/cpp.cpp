// scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
// Model: C++ in one thread, an iteration for each element. Each sum needs the one before: a serial dependency, in which
//   an addition waits for the last one.
// Memory: reads a once and writes c once, in order.
// Edges: none; the loop ends at n.
#include <cstdint>

#include "../../formats.hpp"

template <typename T>
static void scan(const T* a, Sum<T>* c, std::int64_t n) {
  Sum<T> sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    sum += widen(a[i]);
    c[i] = sum;
  }
}
