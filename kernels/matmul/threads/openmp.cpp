// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Idea: no row of c depends on another one, so every thread computes some of them.
// Model: one directive divides the rows of c among threads that share memory; `simd` makes vector instructions.
// Memory: a thread reads all of b in order for each of its rows. A row of c stays in its first-level cache.
// Edges: none; every loop ends at its size, and c is 0 before the first sum.
// ---
// Formats: float32, float64
#include <cstdint>

template <typename T>
static void matmul(const T* a, const T* b, T* c, std::int64_t m, std::int64_t n, std::int64_t k) {
#pragma omp parallel for
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) c[i * n + j] = 0;
    for (std::int64_t p = 0; p < k; ++p) {
#pragma omp simd
      for (std::int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + p] * b[p * n + j];
    }
  }
}
