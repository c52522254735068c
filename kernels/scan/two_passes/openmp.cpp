// scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
// Idea: two passes. Each thread adds up its part. When all have, each knows what comes before its part, and adds once
//   more from there. So n more additions make the serial dependency one of few numbers, the sums of parts.
// Model: two directives divide two loops over parts among threads.
// Memory: each thread reads its part of a twice, from memory where it is larger than the cache, and writes c once.
// Edges: some parts have one element more than others, or none.
#include <omp.h>

#include <cstdint>

#include "../../formats.hpp"

template <typename T>
static void scan(const T* a, Sum<T>* c, std::int64_t n) {
  constexpr std::int64_t most_threads = 1024;
  const std::int64_t threads = omp_get_max_threads(), parts = threads < most_threads ? threads : most_threads;
  Sum<T> sums[most_threads + 1] = {};
#pragma omp parallel for schedule(static)
  for (std::int64_t part = 0; part < parts; ++part) {
    Sum<T> sum = 0;
    for (std::int64_t i = n * part / parts; i < n * (part + 1) / parts; ++i) sum += widen(a[i]);
    sums[part + 1] = sum;
  }
  for (std::int64_t part = 0; part < parts; ++part) sums[part + 1] += sums[part];
#pragma omp parallel for schedule(static)
  for (std::int64_t part = 0; part < parts; ++part) {
    Sum<T> sum = sums[part];
    for (std::int64_t i = n * part / parts; i < n * (part + 1) / parts; ++i) {
      sum += widen(a[i]);
      c[i] = sum;
    }
  }
}
