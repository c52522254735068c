// dot: c = the sum of a[i] b[i] for vectors of n elements.
// Idea: eight registers of sums. One instruction adds a product to each sum of a register, and eight are under way.
// Model: one thread, full registers.
// Memory: reads a and b once, in order. Even so, one core leaves a part of the memory's bandwidth unused.
// Edges: what is left after the last eight registers is added one product at a time; an empty sum is 0.
// ---
// Formats: float32, float64
#include <cstdint>

#include "../../simd.hpp"

template <typename T>
static void dot(const T* a, const T* b, T* c, std::int64_t n) {
  using V = Simd<T>;
  constexpr std::int64_t registers = 8;
  typename V::Register sums[registers];
  for (auto& each : sums) each = V::broadcast(0);
  std::int64_t i = 0;
  for (; i + registers * V::lanes <= n; i += registers * V::lanes) {
#pragma GCC unroll 8
    for (std::int64_t at = 0; at < registers; ++at) {
      sums[at] = V::multiply_add(V::load(a + i + at * V::lanes), V::load(b + i + at * V::lanes), sums[at]);
    }
  }
  for (std::int64_t at = 1; at < registers; ++at) sums[0] = V::add(sums[0], sums[at]);
  T sum = sum_of_lanes<T>(sums[0]);
  for (; i < n; ++i) sum += a[i] * b[i];
  c[0] = sum;
}
