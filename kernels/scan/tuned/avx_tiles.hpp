// What a thread does with a tile of scan, by vector registers.
#pragma once

#include <type_traits>

#include "../../counting.hpp"
#include "../../simd.hpp"
#include "../../simd_places.hpp"

namespace {

/// The sum of n elements. In eight registers of sums no addition waits for another.
template <typename T>
Sum<T> sum_of(const T* a, Size n) {
  using V = Simd<Sum<T>>;
  constexpr Size registers = 8, lanes = V::lanes;
  typename V::Register sums[registers];
  for (auto& each : sums) each = V::broadcast(0);
  Size i = 0;
  for (; i + registers * lanes <= n; i += registers * lanes) {
#pragma GCC unroll 8
    for (Size at = 0; at < registers; ++at) sums[at] = V::add(sums[at], Simd<T>::load(a + i + at * lanes));
  }
  for (Size half = registers / 2; half > 0; half /= 2) {
    for (Size at = 0; at < half; ++at) sums[at] = V::add(sums[at], sums[at + half]);
  }
  Sum<T> sum = sum_of_lanes<Sum<T>>(sums[0]);
  for (; i < n; ++i) sum += widen(a[i]);
  return sum;
}

/// The sums of a register's lanes and all lanes before, in log steps (Hillis and Steele).
template <typename V, int apart = 1>
typename V::Register sums_within(typename V::Register x) {
  if constexpr (apart == V::lanes)
    return x;
  else
    return sums_within<V, 2 * apart>(V::add(x, moved_up<V, apart>(x)));
}

/// Stores a register past the cache.
template <typename S>
void stream(S* to, typename Simd<S>::Register x) {
  if constexpr (std::is_same_v<S, std::int32_t>)
    Simd<float>::stream(reinterpret_cast<float*>(to), reinterpret_cast<Simd<float>::Register>(x));
  else
    Simd<S>::stream(to, x);
}

/// Writes the sums of n elements, each with what comes `before` them. A register's own sums do not wait for those of
/// the register before, but for one addition.
template <typename T, bool streamed>
void scan_from(Sum<T> before, const T* a, Sum<T>* c, Size n) {
  using V = Simd<Sum<T>>;
  Size i = 0;
  for (; i < n && streamed && reinterpret_cast<std::uintptr_t>(c + i) % sizeof(typename V::Register) != 0; ++i) {
    c[i] = before += widen(a[i]);
  }
  auto so_far = V::broadcast(before);
#pragma GCC unroll 4
  for (; i + V::lanes <= n; i += V::lanes) {
    const auto own = sums_within<V>(Simd<T>::load(a + i)), sums = V::add(so_far, own);
    so_far = V::add(so_far, last_lane<V>(own));
    if (streamed)
      stream(c + i, sums);
    else
      V::store(c + i, sums);
  }
  Sum<T> lane[V::lanes];
  V::store(lane, so_far);
  before = lane[0];
  for (; i < n; ++i) c[i] = before += widen(a[i]);
  if (streamed) _mm_sfence();  // other threads see streamed stores only after this
}

}  // namespace
