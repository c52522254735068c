// vecadd: c[i] = a[i] + b[i] for vectors of n elements.
// Idea: stores go past the cache: an ordinary one reads the line that it is about to overwrite, a quarter of all traffic.
// Model: one directive divides the loop, an iteration for each register, among threads that share memory.
// Memory: reads a and b once and writes c once, in order; what short vectors leave in the memory is read from there.
// Edges: what lies before the first whole register of c, and after the last one, is added one element at a time.
// Formats: float32, float64
#include <cstdint>

#include "../../simd.hpp"
#include "../../workspace.hpp"

template <typename T>
static void vecadd(const T* a, const T* b, T* c, std::int64_t n) {
  using V = Simd<T>;
  constexpr Size bytes = V::lanes * sizeof(T);
  const Size before = (bytes - Size(reinterpret_cast<std::uintptr_t>(c) % bytes)) % bytes / Size(sizeof(T));
  const Size first = least(before, n), last = n - (n - first) % V::lanes;
  for (Size i = 0; i < first; ++i) c[i] = a[i] + b[i];
#pragma omp parallel
  {
#pragma omp for schedule(static) nowait
    for (Size i = first; i < last; i += V::lanes) V::stream(c + i, V::add(V::load(a + i), V::load(b + i)));
    _mm_sfence();  // streamed stores are seen by others only after this
  }
  for (Size i = last; i < n; ++i) c[i] = a[i] + b[i];
}
