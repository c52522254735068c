// histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
// Model: an algorithm of the standard library counts each of 64 parts in a table of its own, and adds up the tables. Its
//   policy, `par`, allows it to divide the parts among threads that share memory. C++17 has no atomics on elements.
// Memory: every thread reads parts of a, each in order. A table is one KiB, and stays in the nearest cache.
// Edges: what lies outside of [0, 1) is counted nowhere. NaN is not, either: no comparison with it is true.
#include <cstdint>
#include <execution>
#include <numeric>

#include "../../formats.hpp"
#include "../../indices.hpp"

namespace {

struct Table {
  std::int32_t of[256] = {};
};

inline Table operator+(Table x, const Table& y) {
  for (std::int64_t k = 0; k < 256; ++k) x.of[k] += y.of[k];
  return x;
}

}  // namespace

template <typename T>
static void histogram(const T* a, std::int32_t* c, std::int64_t n) {
  const auto count = [a, n](std::int64_t part) {
    Table table;
    for (std::int64_t i = n * part / 64; i < n * (part + 1) / 64; ++i) {
      const Sum<T> at = sizeof(T) == 1 ? widen(a[i]) + 128 : 256 * widen(a[i]);
      if (at >= 0 && at < 256) ++table.of[std::int64_t(at)];
    }
    return table;
  };
  const auto add = [](const Table& x, const Table& y) { return x + y; };
  const Table all = std::transform_reduce(std::execution::par, Index(0), Index(64), Table(), add, count);
  for (std::int64_t k = 0; k < 256; ++k) c[k] = all.of[k];
}
