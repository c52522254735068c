// dot: c = the sum of a[i] b[i] for vectors of n elements.
// Model: C++ in one thread, an iteration for each product. The order of a sum is part of the program, so the compiler
//   may not add several at once: each addition waits for the one before.
// Memory: reads a and b once, in order.
// Edges: none; the loop ends at n, and an empty sum is 0.
#include <cstdint>

#include "../../formats.hpp"

template <typename T>
static void dot(const T* a, const T* b, Sum<T>* c, std::int64_t n) {
  Sum<T> sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += widen(a[i]) * widen(b[i]);
  c[0] = sum;
}
