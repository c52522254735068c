// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Idea: finish one block of rows and of p after another. Then the strip of b that all tiles of a block read stays in
//   the first-level cache. The tiles' part of a stays in the second-level cache.
// Model: one directive divides blocks of rows among threads that share memory; `simd` makes vector instructions.
// Memory: reads a strip of b from further away once for every 252 rows. Adds to c once for every 192 of p.
// Edges: tiles of one row take the rows that are left, and narrower strips the columns. c is 0 before the first sum.
// ---
// Formats: float32, float64
#include <omp.h>

#include <cstdint>

constexpr std::int64_t most_rows = 252, most_depth = 192;

#if defined(__AVX512F__)
constexpr int bytes_of_register = 64;
#elif defined(__AVX__)
constexpr int bytes_of_register = 32;
#else
constexpr int bytes_of_register = 16;
#endif

static std::int64_t least(std::int64_t x, std::int64_t y) { return x < y ? x : y; }

/// The tile of c that begins at `c`. All its loops have constant ends, so the sums stay in registers.
template <typename T, int height, int width>
static void tile(const T* a, const T* b, T* c, std::int64_t n, std::int64_t k, std::int64_t depth) {
  T sum[height][width] = {};
  for (std::int64_t p = 0; p < depth; ++p) {
#pragma GCC unroll 6
    for (int i = 0; i < height; ++i) {
#pragma omp simd
      for (int j = 0; j < width; ++j) sum[i][j] += a[i * k + p] * b[p * n + j];
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < height; ++i) {
#pragma omp simd
    for (int j = 0; j < width; ++j) c[i * n + j] += sum[i][j];
  }
}

/// The columns of c from `j` on, in strips of that width, then in narrower ones.
template <typename T, int width>
static void strips(const T* a, const T* b, T* c, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t depth,
                   std::int64_t j) {
  for (; j + width <= n; j += width) {
    std::int64_t i = 0;
    for (; i + 6 <= m; i += 6) tile<T, 6, width>(a + i * k, b + j, c + i * n + j, n, k, depth);
    for (; i < m; ++i) tile<T, 1, width>(a + i * k, b + j, c + i * n + j, n, k, depth);
  }
  if constexpr (width > 1) strips<T, width / 2>(a, b, c, m, n, k, depth, j);
}

template <typename T>
static void matmul(const T* a, const T* b, T* c, std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::int64_t rows = least(m / omp_get_max_threads() + 1, most_rows);
#pragma omp parallel for
  for (std::int64_t i = 0; i < m; i += rows) {
    const std::int64_t height = least(rows, m - i);
    for (std::int64_t j = 0; j < height * n; ++j) c[i * n + j] = 0;
    for (std::int64_t p = 0; p < k; p += most_depth) {
      const std::int64_t depth = least(most_depth, k - p);
      strips<T, 2 * bytes_of_register / sizeof(T)>(a + i * k + p, b + p * n, c + i * n, height, n, k, depth, 0);
    }
  }
}
