// dot: c = the sum of a[i] b[i] for vectors of n elements.
// Model: one thread. One instruction multiplies and adds in all lanes of a register (FMA; SSE needs two). Each lane has
//   a sum of its own, of every 16th product in AVX-512. In the end they are added up.
// Memory: reads a and b once, in order, a vector register at a time. No alignment is needed.
// Edges: what is left after the last full vector is added one product at a time.
#include <cstdint>

#include "../../simd.hpp"

template <typename T>
static void dot(const T* a, const T* b, Sum<T>* c, std::int64_t n) {
  using V = Simd<T>;
  auto sums = V::broadcast(0);
  std::int64_t i = 0;
  for (; i + V::lanes <= n; i += V::lanes) sums = V::multiply_add(V::load(a + i), V::load(b + i), sums);
  Sum<T> sum = sum_of_lanes<T>(sums);
  for (; i < n; ++i) sum += widen(a[i]) * widen(b[i]);
  c[0] = sum;
}
