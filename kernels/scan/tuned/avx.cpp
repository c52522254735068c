// scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
// Idea: vector registers. The lanes of one compute their sums in log steps, and only one addition a register waits for
//   the one before. c goes past the cache: an ordinary store first reads the line that it overwrites, a third of all
//   traffic here. avx_tiles.hpp has what a thread does with a tile.
// Model: threads take one tile after another. Each adds up its tile, and gets what comes before it in the order of the
//   tiles. Then it computes the sums, while its tile is in the cache. Short vectors stay on one thread, which needs no
//   first pass. The order of all additions is fixed, so results are the same every time.
// Memory: reads a once from memory and once from the second-level cache, and writes c once. Where both exceed the
//   last-level cache, or 96 MiB, c is streamed to memory. Else it stays in the cache, where its reader wants it.
// Edges: the last tile may be shorter. Where c is streamed, elements before the first aligned one are added one by one,
//   and so are those after the last full register.
#include <atomic>
#include <cstdint>
#include <thread>

#include "../../workspace.hpp"
#include "avx_tiles.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace {

/// Bytes of a vector up to which a second thread costs more than it saves, and of a tile, which stays in the cache.
constexpr Size few_to_share = Size(1) << 20, bytes_of_tile = Size(1) << 18;

template <typename T, bool streamed>
void scan_tiles(const T* a, Sum<T>* c, Size n) {
  constexpr Size tile = bytes_of_tile / sizeof(T);
  Sum<T> sum = 0;
  std::atomic<Size> turn(0);
#pragma omp parallel for schedule(monotonic : dynamic)
  for (Size at = 0; at < (n + tile - 1) / tile; ++at) {
    const Size begin = at * tile, count = least(tile, n - begin);
    const Sum<T> own = sum_of(a + begin, count);
    while (turn.load(std::memory_order_acquire) != at) std::this_thread::yield();
    const Sum<T> before = sum;
    sum += own;
    turn.store(at + 1, std::memory_order_release);
    scan_from<T, streamed>(before, a + begin, c + begin, count);
  }
}

}  // namespace

template <typename T>
static void scan(const T* a, Sum<T>* c, std::int64_t n) {
#if defined(_OPENMP)
  const bool alone = n * Size(sizeof(T)) <= few_to_share || omp_get_max_threads() == 1;
#else
  const bool alone = true;
#endif
  const bool streamed = n * Size(sizeof(T) + sizeof(Sum<T>)) > effective_cache();
  if (alone && streamed) return scan_from<T, true>(0, a, c, n);
  if (alone) return scan_from<T, false>(0, a, c, n);
  streamed ? scan_tiles<T, true>(a, c, n) : scan_tiles<T, false>(a, c, n);
}
