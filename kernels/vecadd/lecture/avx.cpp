// vecadd: c[i] = a[i] + b[i] for vectors of n elements.
// Model: one thread. An instruction adds one element in each lane of a register: 16 floats in AVX-512, 8 in AVX2, 4 in
//   SSE. A register has half as many lanes of doubles.
// Memory: reads a and b once and writes c once, a vector register at a time. No alignment is needed.
// Edges: what is left after the last full vector is added one element at a time.
#include <cstdint>

#include "../../simd.hpp"

template <typename T>
static void vecadd(const T* a, const T* b, T* c, std::int64_t n) {
  using V = Simd<T>;
  std::int64_t i = 0;
  for (; i + V::lanes <= n; i += V::lanes) V::store(c + i, V::add(V::load(a + i), V::load(b + i)));
  for (; i < n; ++i) c[i] = narrow<T>(widen(a[i]) + widen(b[i]));
}
