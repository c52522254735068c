// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Model: one instruction multiplies and adds many lanes (FMA): neighbouring columns j share a register.
// Memory: reads a by rows, each element copied to all lanes, and b a register of columns at a time; writes c once.
// Edges: columns left after the last full register are summed one at a time; an empty sum is 0.
#include <cstdint>

#include "../../simd.hpp"

template <typename T>
static void matmul(const T* a, const T* b, T* c, std::int64_t m, std::int64_t n, std::int64_t k) {
  using V = Simd<T>;
  for (std::int64_t i = 0; i < m; ++i) {
    std::int64_t j = 0;
    for (; j + V::lanes <= n; j += V::lanes) {
      auto sum = V::broadcast(0);
      for (std::int64_t p = 0; p < k; ++p) {
        sum = V::multiply_add(V::broadcast(a[i * k + p]), V::load(b + p * n + j), sum);
      }
      V::store(c + i * n + j, sum);
    }
    for (; j < n; ++j) {
      T sum = 0;
      for (std::int64_t p = 0; p < k; ++p) sum += a[i * k + p] * b[p * n + j];
      c[i * n + j] = sum;
    }
  }
}
