// vecadd for the compiler's vectors: one thread's loop in cpp and openmp.
#pragma once

#include "../../counting.hpp"
#include "pairs.hpp"

namespace {

constexpr Size line = 64, page = 4096;  ///< bytes

/// How many elements an iteration adds: those of a pair, or one.
template <typename T>
constexpr Size at_once = sizeof(T) == 2 ? 2 : 1;

template <typename T>
void add_at_once(const T* a, const T* b, T* c) {
  if constexpr (at_once<T> == 2) {
    std::uint32_t x, y;
    __builtin_memcpy(&x, a, sizeof x);
    __builtin_memcpy(&y, b, sizeof y);
    x = Pairs<T>::add(x, y);
    __builtin_memcpy(c, &x, sizeof x);
  } else {
    *c = *a + *b;
  }
}

/// Adds n elements. `simd` tells the compiler that vectors may be the same, but never shifted. So it checks nothing,
/// and is as quick where c is a or b.
///
/// The sums of 16 bits take so many instructions that too few loads are under way. So before each block of a few lines,
/// those of a page later are prefetched, where the CPU's own prefetching ends.
template <typename T>
void add(const T* a, const T* b, T* c, Size n) {
  const Size block = sizeof(T) == 2 ? 256 : n;
  for (Size i = 0; i < n; i += block) {
    const Size end = least(i + block, n), last = end - (end - i) % at_once<T>;
    for (Size at = i; sizeof(T) == 2 && at < end; at += line / Size(sizeof(T))) {
      __builtin_prefetch(a + at + page / Size(sizeof(T)));
      __builtin_prefetch(b + at + page / Size(sizeof(T)));
    }
#pragma omp simd
    for (Size at = i; at < last; at += at_once<T>) add_at_once(a + at, b + at, c + at);
    if (last < end) c[last] = narrow<T>(widen(a[last]) + widen(b[last]));
  }
}

}  // namespace
