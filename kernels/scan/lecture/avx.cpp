// scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
// Model: one thread. Within a register, each lane adds the one before it, then the one two places before, then four,
//   and so on (Hillis and Steele): log steps, 4 for the 16 lanes of AVX-512. Then all lanes add what comes before.
// Memory: reads a once and writes c once, in order, a vector register at a time. No alignment is needed.
// Edges: what is left after the last full vector is added one element at a time.
#include <cstdint>

#include "../../simd.hpp"
#include "../../simd_places.hpp"

template <typename V, std::int64_t apart = 1>
static auto sums_of_lanes(typename V::Register x) {
  if constexpr (apart == V::lanes)
    return x;
  else
    return sums_of_lanes<V, 2 * apart>(V::add(x, moved_up<V, apart>(x)));
}

template <typename T>
static void scan(const T* a, Sum<T>* c, std::int64_t n) {
  using V = Simd<Sum<T>>;
  auto before = V::broadcast(0);
  std::int64_t i = 0;
  for (; i + V::lanes <= n; i += V::lanes) {
    V::store(c + i, V::add(before, sums_of_lanes<V>(Simd<T>::load(a + i))));
    before = V::broadcast(c[i + V::lanes - 1]);
  }
  for (; i < n; ++i) c[i] = (i > 0 ? c[i - 1] : 0) + widen(a[i]);
}
