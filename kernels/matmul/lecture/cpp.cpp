// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Model: C++ in one thread: three loops, as in the definition.
// Memory: reads a by rows, and b by columns, whose elements lie n apart. Writes every element of c once.
// Edges: none; every loop ends at its size, and an empty sum is 0.
#include <cstdint>

#include "../../formats.hpp"

template <typename T>
static void matmul(const T* a, const T* b, Sum<T>* c, std::int64_t m, std::int64_t n, std::int64_t k) {
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      Sum<T> sum = 0;
      for (std::int64_t p = 0; p < k; ++p) sum += widen(a[i * k + p]) * widen(b[p * n + j]);
      c[i * n + j] = sum;
    }
  }
}
