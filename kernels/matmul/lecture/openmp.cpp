// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Model: one directive divides the rows of c among threads that share memory.
// Memory: every thread reads its rows of a, and all of b by columns, whose elements lie n apart. It writes its rows of
//   c.
// Edges: none; every loop ends at its size, and an empty sum is 0.
#include <cstdint>

#include "../../formats.hpp"

template <typename T>
static void matmul(const T* a, const T* b, Sum<T>* c, std::int64_t m, std::int64_t n, std::int64_t k) {
#pragma omp parallel for
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      Sum<T> sum = 0;
      for (std::int64_t p = 0; p < k; ++p) sum += widen(a[i * k + p]) * widen(b[p * n + j]);
      c[i * n + j] = sum;
    }
  }
}
