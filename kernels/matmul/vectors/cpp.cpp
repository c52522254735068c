// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Idea: compute neighbouring columns at once, each in a lane of a vector register.
// Model: C++ in one thread. The directive `simd` makes vector instructions of a fourth, innermost loop.
// Memory: reads a by rows, and of every row of b one cache line at a time. Writes every element of c once.
// Edges: columns that fill no cache line are computed one by one; an empty sum is 0.
// ---
// Formats: float32, float64
#include <cstdint>

template <typename T>
static void matmul(const T* a, const T* b, T* c, std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr std::int64_t lanes = 64 / sizeof(T);
  for (std::int64_t i = 0; i < m; ++i) {
    std::int64_t j = 0;
    for (; j + lanes <= n; j += lanes) {
      T sum[lanes] = {};
      for (std::int64_t p = 0; p < k; ++p) {
#pragma omp simd
        for (std::int64_t lane = 0; lane < lanes; ++lane) sum[lane] += a[i * k + p] * b[p * n + j + lane];
      }
      for (std::int64_t lane = 0; lane < lanes; ++lane) c[i * n + j + lane] = sum[lane];
    }
    for (; j < n; ++j) {
      T sum = 0;
      for (std::int64_t p = 0; p < k; ++p) sum += a[i * k + p] * b[p * n + j];
      c[i * n + j] = sum;
    }
  }
}
