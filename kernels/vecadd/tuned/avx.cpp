// vecadd: c[i] = a[i] + b[i] for vectors of n elements.
// Model: full registers. The 16-bit formats are added in pairs that fill them. Where instructions convert float16, its
//   loads widen and its stores narrow it. Stores go past the cache. An ordinary store first reads the line that it
//   overwrites, a quarter of all traffic here. Threads take chunks, since one core alone cannot fill the memory's
//   bandwidth.
// Memory: where the vectors exceed the last-level cache, or 96 MiB, c is streamed to memory. Else it stays in the cache,
//   where its reader wants it.
// Edges: each thread adds one element at a time until its part of c is aligned, and after its last full iteration.
#include <cstdint>

#include "../../simd.hpp"
#include "../../workspace.hpp"
#include "avx_adder.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace {

/// Elements below which a second thread costs more than it saves.
constexpr Size few_to_share = Size(1) << 16;

/// Elements of a page. Two threads should not write to the same one.
template <typename T>
constexpr Size page = 4096 / sizeof(T);

/// Registers that the loop adds in an iteration. Several lines of c on their way to memory use its bandwidth better.
constexpr Size unrolled = 4;

/// Bytes between what is added and what is prefetched. In the 16-bit formats so many instructions stand between loads
/// that too few of them are under way.
constexpr Size line = 64, ahead = 1024;

/// Prefetches what will be added after these bytes of two vectors.
inline void prefetch(const void* a, const void* b, Size bytes) {
  for (Size at = ahead; at < ahead + bytes; at += line) {
    __builtin_prefetch(static_cast<const char*>(a) + at);
    __builtin_prefetch(static_cast<const char*>(b) + at);
  }
}

template <typename T>
T sum(T x, T y) {
  return narrow<T>(widen(x) + widen(y));
}

/// Adds the elements from `begin` to before `end`.
template <typename T, bool streamed>
void add(const T* a, const T* b, T* c, Size begin, Size end) {
  using V = Adder<T>;
  constexpr Size register_bytes = V::lanes * sizeof(T);
  Size i = begin;
  if (streamed) {
    for (; i < end && reinterpret_cast<std::uintptr_t>(c + i) % register_bytes != 0; ++i) c[i] = sum(a[i], b[i]);
  }
  for (; i + unrolled * V::lanes <= end; i += unrolled * V::lanes) {
    if (streamed && sizeof(T) == 2) prefetch(a + i, b + i, unrolled * register_bytes);
#pragma GCC unroll 4
    for (Size at = i; at < i + unrolled * V::lanes; at += V::lanes) {
      const auto sums = V::add(a + at, b + at);
      if (streamed) {
        V::stream(c + at, sums);
      } else {
        V::store(c + at, sums);
      }
    }
  }
  for (; i < end; ++i) c[i] = sum(a[i], b[i]);
  if (streamed) _mm_sfence();  // other threads see streamed stores only after this
}

}  // namespace

template <typename T>
static void vecadd(const T* a, const T* b, T* c, std::int64_t n) {
  if (n <= few_to_share) return add<T, false>(a, b, c, 0, n);
  const bool streamed = 3 * n * Size(sizeof(T)) > effective_cache();
#if defined(_OPENMP)
  const Size threads = omp_get_max_threads();
#else
  const Size threads = 1;
#endif
  const Size chunk = parts(parts(n, threads), page<T>) * page<T>;
#pragma omp parallel for schedule(static)
  for (Size thread = 0; thread < threads; ++thread) {
    const Size begin = least(thread * chunk, n), end = least(begin + chunk, n);
    streamed ? add<T, true>(a, b, c, begin, end) : add<T, false>(a, b, c, begin, end);
  }
}
