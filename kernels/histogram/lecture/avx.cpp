// histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
// Model: one thread. One instruction finds the places of all elements of a register. AVX has no instruction that counts:
//   two lanes may have the same bin, so they count one after the other.
// Memory: reads a once, in order, a vector register at a time. The places pass through memory, in the nearest cache.
// Edges: what lies outside of [0, 1) is counted nowhere, nor is NaN. The last elements are counted one at a time.
#include <cstdint>

#include "../../simd.hpp"

template <typename S>
static void count(const S* at, std::int32_t* c, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (at[i] >= 0 && at[i] < 256) ++c[std::int64_t(at[i])];
  }
}

template <typename T>
static void histogram(const T* a, std::int32_t* c, std::int64_t n) {
  using V = Simd<T>;
  for (std::int64_t k = 0; k < 256; ++k) c[k] = 0;
  std::int64_t i = 0;
  for (; i + V::lanes <= n; i += V::lanes) {
    Sum<T> at[V::lanes];
    if constexpr (sizeof(T) == 1) {
      V::store(at, V::add(V::load(a + i), V::broadcast(128)));
    } else {
      Simd<Sum<T>>::store(at, V::multiply(V::load(a + i), V::broadcast(256)));
    }
    count(at, c, V::lanes);
  }
  for (; i < n; ++i) {
    const Sum<T> at = sizeof(T) == 1 ? widen(a[i]) + 128 : 256 * widen(a[i]);
    count(&at, c, 1);
  }
}
