// scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
// Idea: two passes over a tile after the other, in place of two over the whole vector. So the second pass finds its
//   tile in the cache, and memory is read once. vector_loop.hpp has what a thread does with a tile.
// Model: a directive has threads take one tile after another. In the order of the tiles, they take what comes before
//   their own one, and leave what comes before the next. `ordered` would say that, but g++ ends it with the tile: the
//   next thread would wait until this one has written its sums. Short vectors stay on one thread, which needs no first
//   pass. The order of all additions is fixed, so results are the same every time.
// Memory: reads a once from memory and once from the second-level cache, and writes c once, in order.
// Edges: the last tile may be shorter.
#include <omp.h>

#include <atomic>
#include <thread>

#include "vector_loop.hpp"

namespace {

/// Bytes of a vector up to which a second thread costs more than it saves, and of a tile, which stays in the cache.
constexpr Size few_to_share = Size(1) << 20, bytes_of_tile = Size(1) << 18;

}  // namespace

template <typename T>
static void scan(const T* a, Sum<T>* c, std::int64_t n) {
  if (n * Size(sizeof(T)) <= few_to_share || omp_get_max_threads() == 1) return scan_from(Sum<T>(0), a, c, n);
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
    scan_from(before, a + begin, c + begin, count);
  }
}
