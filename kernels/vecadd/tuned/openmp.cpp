// vecadd: c[i] = a[i] + b[i] for vectors of n elements.
// Idea: threads take chunks in alternation: one core alone cannot fill the memory's bandwidth. vector_loop.hpp has what
//   a thread does.
// Model: one directive divides the loop among threads, and another one a chunk among the lanes of registers. Short
//   vectors stay on one thread, since waking others takes longer.
// Memory: reads a and b once and writes c once, in order. An ordinary store first reads the line that it overwrites, a
//   quarter of all traffic. The clause `nontemporal(c)` would ask for stores past the cache, but g++ 12 ignores it.
// Edges: the elements before the first whole cache line of c come first, so that no register is stored to two lines.
#include <omp.h>

#include "vector_loop.hpp"

namespace {

/// How many elements come before the first that begins a cache line.
template <typename T>
Size before_line(const T* c) {
  return (line - Size(reinterpret_cast<std::uintptr_t>(c) % line)) % line / Size(sizeof(T));
}

}  // namespace

template <typename T>
static void vecadd(const T* a, const T* b, T* c, std::int64_t n) {
  constexpr Size few_to_share = 1 << 16;  // below, waking the threads takes longer than adding
  constexpr Size longest_chunk = 1 << 20, whole = line / sizeof(T);
  const Size first = n > few_to_share ? before_line(c) : n;
  add(a, b, c, first);
  if (first == n) return;
  const Size chunk = least(parts(parts(n, omp_get_max_threads()), whole) * whole, longest_chunk);
#pragma omp parallel for schedule(static, 1)
  for (Size i = first; i < n; i += chunk) add(a + i, b + i, c + i, least(chunk, n - i));
}
