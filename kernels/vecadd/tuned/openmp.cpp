// vecadd: c[i] = a[i] + b[i] for vectors of n elements.
// Idea: `simd` tells the compiler that vectors may be the same, but never shifted: it need not check, and is as quick
//   where c is a or b. Threads take stretches by turns, side by side: one core alone cannot fill the memory's bandwidth.
// Model: one directive shares the loop among threads and registers; short vectors are not worth waking threads for.
// Memory: reads a and b once and writes c once, in order. An ordinary store reads the line that it is about to overwrite,
//   a quarter of all traffic; the clause `nontemporal(c)` would ask for stores past the cache, but g++ 12 ignores it.
// Edges: the elements before the first whole cache line of c come first, so that no register is stored to two lines.
#include <omp.h>

#include "../../formats.hpp"
#include "../../workspace.hpp"

namespace {

constexpr std::uintptr_t line = 64;  ///< bytes of a cache line

/// Elements before the first that begins a cache line.
template <typename T>
Size before_line(const T* c) {
  return Size((line - reinterpret_cast<std::uintptr_t>(c) % line) % line / sizeof(T));
}

}  // namespace

template <typename T>
static void vecadd(const T* a, const T* b, T* c, std::int64_t n) {
  constexpr Size few_to_share = 1 << 16;  // below, waking the threads takes longer than adding
  constexpr Size longest_stretch = 1 << 20, whole = line / sizeof(T);
  const Size first = n > few_to_share ? before_line(c) : n;
#pragma omp simd
  for (Size i = 0; i < first; ++i) c[i] = narrow<T>(widen(a[i]) + widen(b[i]));
  if (first == n) return;
  // Whole lines by our own count: with the modifier `simd :` clang's OpenMP gives some elements to two threads.
  const Size stretch = least(parts(parts(n, omp_get_max_threads()), whole) * whole, longest_stretch);
#pragma omp parallel for simd schedule(static, stretch)
  for (Size i = first; i < n; ++i) c[i] = narrow<T>(widen(a[i]) + widen(b[i]));
}
