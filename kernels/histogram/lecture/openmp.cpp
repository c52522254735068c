// histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
// Model: one directive divides the loop, an iteration for each element, among threads that share memory. With
//   `reduction`, every thread has a table of its own, which starts with zeros. In the end all are added up.
// Memory: every thread reads its own chunk of a, in order. Its table is one KiB, and stays in its nearest cache.
// Edges: what lies outside of [0, 1) is counted nowhere. NaN is not, either: no comparison with it is true.
#include <cstdint>

#include "../../formats.hpp"

template <typename T>
static void histogram(const T* a, std::int32_t* c, std::int64_t n) {
  for (std::int64_t k = 0; k < 256; ++k) c[k] = 0;
#pragma omp parallel for reduction(+ : c[ : 256])
  for (std::int64_t i = 0; i < n; ++i) {
    const Sum<T> at = sizeof(T) == 1 ? widen(a[i]) + 128 : 256 * widen(a[i]);
    if (at >= 0 && at < 256) ++c[std::int64_t(at)];
  }
}
