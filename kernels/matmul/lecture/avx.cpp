// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Model: one thread. One instruction multiplies and adds in all lanes of a register (FMA; SSE needs two). The lanes are
//   neighbouring elements of a row of c.
// Memory: reads a by rows, each element copied to all lanes, and b by registers of neighbouring columns. Writes c once.
//   Each visit to a cache line of b yields a register of elements, in cpp only one. So part of the gain over cpp comes
//   from this order.
// Edges: columns left after the last full register are summed one at a time; an empty sum is 0.
#include <cstdint>

#include "../../simd.hpp"

template <typename T>
static void matmul(const T* a, const T* b, Sum<T>* c, std::int64_t m, std::int64_t n, std::int64_t k) {
  using V = Simd<T>;
  for (std::int64_t i = 0; i < m; ++i) {
    std::int64_t j = 0;
    for (; j + V::lanes <= n; j += V::lanes) {
      auto sum = V::broadcast(0);
      for (std::int64_t p = 0; p < k; ++p) {
        sum = V::multiply_add(V::broadcast(widen(a[i * k + p])), V::load(b + p * n + j), sum);
      }
      V::store(c + i * n + j, sum);
    }
    for (; j < n; ++j) {
      Sum<T> sum = 0;
      for (std::int64_t p = 0; p < k; ++p) sum += widen(a[i * k + p]) * widen(b[p * n + j]);
      c[i * n + j] = sum;
    }
  }
}
