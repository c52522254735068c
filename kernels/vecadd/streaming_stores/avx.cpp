// vecadd: c[i] = a[i] + b[i] for vectors of n elements.
// Idea: stores go past the cache. An ordinary one first reads the line that it overwrites, a quarter of all traffic.
// Model: full registers; one directive divides the vectors among threads, a part for each.
// Memory: reads a and b once and writes c once, in order. It leaves nothing of c in the cache.
// Edges: each thread adds one element at a time until its part of c is aligned, and after its last full register.
// ---
// Formats: float32, float64
#include <cstdint>

#include "../../simd.hpp"
#include "../../workspace.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace {

/// Adds the elements from `begin` to before `end`.
template <typename T>
void add(const T* a, const T* b, T* c, Size begin, Size end) {
  using V = Simd<T>;
  constexpr std::uintptr_t register_bytes = V::lanes * sizeof(T);
  Size i = begin;
  for (; i < end && reinterpret_cast<std::uintptr_t>(c + i) % register_bytes != 0; ++i) c[i] = a[i] + b[i];
  for (; i + V::lanes <= end; i += V::lanes) V::stream(c + i, V::add(V::load(a + i), V::load(b + i)));
  for (; i < end; ++i) c[i] = a[i] + b[i];
  _mm_sfence();  // other threads see streamed stores only after this
}

}  // namespace

template <typename T>
static void vecadd(const T* a, const T* b, T* c, std::int64_t n) {
#if defined(_OPENMP)
  const Size threads = omp_get_max_threads();
#else
  const Size threads = 1;
#endif
  const Size part = parts(n, threads);
#pragma omp parallel for schedule(static)
  for (Size thread = 0; thread < threads; ++thread) {
    add(a, b, c, least(thread * part, n), least((thread + 1) * part, n));
  }
}
