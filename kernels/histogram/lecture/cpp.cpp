// histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
// Model: C++ in one thread, an iteration for each element. An update of a counter waits for the one before of the same.
// Memory: reads a once, in order. The counters are one KiB, and stay in the nearest cache.
// Edges: what lies outside of [0, 1) is counted nowhere. NaN is not, either: no comparison with it is true.
#include <cstdint>

#include "../../formats.hpp"

template <typename T>
static void histogram(const T* a, std::int32_t* c, std::int64_t n) {
  for (std::int64_t k = 0; k < 256; ++k) c[k] = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const Sum<T> at = sizeof(T) == 1 ? widen(a[i]) + 128 : 256 * widen(a[i]);
    if (at >= 0 && at < 256) ++c[std::int64_t(at)];
  }
}
