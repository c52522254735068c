// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Idea: the loops over p and j change places. The innermost loop now reads b and writes c by rows, as they lie in
//   memory.
// Model: C++ in one thread, three loops. The directive `simd` makes vector instructions of the innermost one.
// Memory: reads all of b in order for every row of c. A row of c stays in the first-level cache.
// Edges: none; every loop ends at its size, and c is 0 before the first sum.
// ---
// Formats: float32, float64
#include <cstdint>

template <typename T>
static void matmul(const T* a, const T* b, T* c, std::int64_t m, std::int64_t n, std::int64_t k) {
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) c[i * n + j] = 0;
    for (std::int64_t p = 0; p < k; ++p) {
#pragma omp simd
      for (std::int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + p] * b[p * n + j];
    }
  }
}
