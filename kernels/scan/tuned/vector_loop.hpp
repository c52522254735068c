// scan for the compiler's vectors: one thread's loops in cpp and openmp.
#pragma once

#include "../../counting.hpp"
#include "../../formats.hpp"

namespace {

/// Sums that are added to at once, so that no addition waits for another.
template <typename T>
constexpr Size sums = 256 / sizeof(Sum<T>);

/// The sum of n elements. `simd` tells the compiler that it may keep the sums in vector registers.
template <typename T>
Sum<T> sum_of(const T* a, Size n) {
  Sum<T> sum[sums<T>] = {};
  Size i = 0;
  for (; i + sums<T> <= n; i += sums<T>) {
#pragma omp simd
    for (Size at = 0; at < sums<T>; ++at) sum[at] += widen(a[i + at]);
  }
  for (Size at = 0; i < n; ++at, ++i) sum[at] += widen(a[i]);
  for (Size half = sums<T> / 2; half > 0; half /= 2) {
    for (Size at = 0; at < half; ++at) sum[at] += sum[at + half];
  }
  return sum[0];
}

/// Writes the sums of n elements, each with what comes `before` them. `inscan` tells the compiler how it may compute
/// those of a vector register in log steps: above the second directive an element goes into the sum, below it is used.
template <typename T>
void scan_from(Sum<T> before, const T* a, Sum<T>* c, Size n) {
#pragma omp simd reduction(inscan, + : before)
  for (Size i = 0; i < n; ++i) {
    before += widen(a[i]);
#pragma omp scan inclusive(before)
    c[i] = before;
  }
}

}  // namespace
