// histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
// Idea: threads share the elements, and one table. Two may meet at a counter. So an update is atomic: it reads, adds and
//   writes, and no other comes between. Without that, counts would be lost. With it, an update takes many times as long.
// Model: one directive divides the loop, an iteration for each element, among threads that share memory. Another one
//   makes the update atomic.
// Memory: every thread reads its own chunk of a, in order. The table's cache lines go to and fro between cores.
// Edges: what lies outside of [0, 1) is counted nowhere. NaN is not, either: no comparison with it is true.
// ---
// Formats: float32, float64
#include <cstdint>

template <typename T>
static void histogram(const T* a, std::int32_t* c, std::int64_t n) {
  for (std::int64_t k = 0; k < 256; ++k) c[k] = 0;
#pragma omp parallel for
  for (std::int64_t i = 0; i < n; ++i) {
    const T at = 256 * a[i];
    if (at >= 0 && at < 256) {
#pragma omp atomic
      ++c[std::int64_t(at)];
    }
  }
}
