// vecadd: c[i] = a[i] + b[i] for vectors of n elements.
// Idea: `simd` tells the compiler that vectors may be the same, but never shifted. So it checks nothing, and is as
//   quick where c is a or b. Threads take chunks in alternation: one core alone cannot fill the memory's bandwidth.
// Model: one directive divides the loop among threads and registers. Short vectors stay on one thread, since waking
//   others takes longer.
// Memory: reads a and b once and writes c once, in order. An ordinary store first reads the line that it overwrites, a
//   quarter of all traffic. The clause `nontemporal(c)` would ask for stores past the cache, but g++ 12 ignores it.
// Edges: the elements before the first whole cache line of c come first, so that no register is stored to two lines.
#include <omp.h>

#include "../../formats.hpp"
#include "../../workspace.hpp"

namespace {

constexpr std::uintptr_t line = 64;  ///< bytes of a cache line

/// How many elements come before the first that begins a cache line.
template <typename T>
Size before_line(const T* c) {
  return Size((line - reinterpret_cast<std::uintptr_t>(c) % line) % line / sizeof(T));
}

}  // namespace

template <typename T>
static void vecadd(const T* a, const T* b, T* c, std::int64_t n) {
  constexpr Size few_to_share = 1 << 16;  // below, waking the threads takes longer than adding
  constexpr Size longest_chunk = 1 << 20, whole = line / sizeof(T);
  const Size first = n > few_to_share ? before_line(c) : n;
#pragma omp simd
  for (Size i = 0; i < first; ++i) c[i] = narrow<T>(widen(a[i]) + widen(b[i]));
  if (first == n) return;
  // Chunks are whole lines by our own count. With the modifier `simd :` clang's OpenMP gives some elements to two
  // threads.
  const Size chunk = least(parts(parts(n, omp_get_max_threads()), whole) * whole, longest_chunk);
#pragma omp parallel for simd schedule(static, chunk)
  for (Size i = first; i < n; ++i) c[i] = narrow<T>(widen(a[i]) + widen(b[i]));
}
