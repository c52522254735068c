// dot for the compiler's vectors: one thread's loop in cpp and openmp.
#pragma once

#include "../../counting.hpp"
#include "../../formats.hpp"

namespace {

/// Sums that are added to at once. These are 4 of the longest registers, so that no addition waits for another, and 16
/// of the shortest.
template <typename T>
constexpr Size sums = 256 / sizeof(Sum<T>);

/// The sum of n products. `simd` tells the compiler that it may keep the sums in vector registers.
template <typename T>
Sum<T> sum_of(const T* a, const T* b, Size n) {
  Sum<T> sum[sums<T>] = {};
  Size i = 0;
  for (; i + sums<T> <= n; i += sums<T>) {
#pragma omp simd
    for (Size at = 0; at < sums<T>; ++at) sum[at] += widen(a[i + at]) * widen(b[i + at]);
  }
  for (Size at = 0; i < n; ++at, ++i) sum[at] += widen(a[i]) * widen(b[i]);
  for (Size half = sums<T> / 2; half > 0; half /= 2) {
    for (Size at = 0; at < half; ++at) sum[at] += sum[at + half];
  }
  return sum[0];
}

}  // namespace
