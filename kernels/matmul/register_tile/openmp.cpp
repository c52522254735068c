// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Idea: keep 6 rows by 2 registers of c in vector registers while p runs. Each register loaded from b then serves 6
//   rows.
// Model: one directive divides bands of rows among threads that share memory; `simd` makes vector instructions.
// Memory: reads a strip of b, two registers wide, once for every 6 rows. Writes every element of c once.
// Edges: tiles of one row take the rows that are left, and narrower strips the columns. An empty sum is 0.
// ---
// Formats: float32, float64
#include <omp.h>

#include <cstdint>

#if defined(__AVX512F__)
constexpr int bytes_of_register = 64;
#elif defined(__AVX__)
constexpr int bytes_of_register = 32;
#else
constexpr int bytes_of_register = 16;
#endif

/// The tile of c that begins at `c`. All its loops have constant ends, so the sums stay in registers.
template <typename T, int height, int width>
static void tile(const T* a, const T* b, T* c, std::int64_t n, std::int64_t k) {
  T sum[height][width] = {};
  for (std::int64_t p = 0; p < k; ++p) {
#pragma GCC unroll 6
    for (int i = 0; i < height; ++i) {
#pragma omp simd
      for (int j = 0; j < width; ++j) sum[i][j] += a[i * k + p] * b[p * n + j];
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < height; ++i) {
#pragma omp simd
    for (int j = 0; j < width; ++j) c[i * n + j] = sum[i][j];
  }
}

/// The columns of c from `j` on, in strips of that width, then in narrower ones.
template <typename T, int width>
static void strips(const T* a, const T* b, T* c, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t j) {
  for (; j + width <= n; j += width) {
    std::int64_t i = 0;
    for (; i + 6 <= m; i += 6) tile<T, 6, width>(a + i * k, b + j, c + i * n + j, n, k);
    for (; i < m; ++i) tile<T, 1, width>(a + i * k, b + j, c + i * n + j, n, k);
  }
  if constexpr (width > 1) strips<T, width / 2>(a, b, c, m, n, k, j);
}

template <typename T>
static void matmul(const T* a, const T* b, T* c, std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::int64_t rows = m / omp_get_max_threads() + 1;
#pragma omp parallel for
  for (std::int64_t i = 0; i < m; i += rows) {
    const std::int64_t height = i + rows < m ? rows : m - i;
    strips<T, 2 * bytes_of_register / sizeof(T)>(a + i * k, b, c + i * n, height, n, k, 0);
  }
}
