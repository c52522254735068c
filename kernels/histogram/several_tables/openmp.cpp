// histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
// Idea: a thread has four tables, for elements by turns. An update waits for the one before of the same counter, until
//   its sum is stored. With four tables, four neighbours of one bin do not wait for one another.
// Model: one directive divides the loop, an iteration for four elements, among threads. With `reduction`, every thread
//   has tables of its own. In the end the tables of all are added up.
// Memory: every thread reads its own chunk of a, in order. Its tables are four KiB, and stay in its nearest cache.
// Edges: the last elements, fewer than four, are counted by the calling thread. What lies outside of [0, 1), NaN too, is
//   counted nowhere.
// ---
// Formats: float32, float64
#include <cstdint>

template <typename T>
static void count(T x, std::int32_t* c) {
  const T at = 256 * x;
  if (at >= 0 && at < 256) ++c[std::int64_t(at)];
}

template <typename T>
static void histogram(const T* a, std::int32_t* c, std::int64_t n) {
  std::int32_t of[4][256] = {};
#pragma omp parallel for reduction(+ : of)
  for (std::int64_t i = 0; i < n / 4; ++i) {
    for (std::int64_t table = 0; table < 4; ++table) count(a[4 * i + table], of[table]);
  }
  for (std::int64_t i = n / 4 * 4; i < n; ++i) count(a[i], of[0]);
  for (std::int64_t k = 0; k < 256; ++k) c[k] = of[0][k] + of[1][k] + of[2][k] + of[3][k];
}
