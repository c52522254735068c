// histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
// Idea: a thread finds the places of 512 elements first, by vector instructions. Then it counts them in four tables by
//   turns, and no update waits for the one before. tables.hpp has both.
// Model: one directive divides the elements among threads, a part for each. `reduction` gives each a table of its own,
//   to which its four are added in the end. Short vectors stay on one thread, since waking others takes longer.
// Memory: reads a once, in order. A thread's tables and places are 6 KiB, and stay in its nearest cache.
// Edges: parts may be empty. What lies outside of [0, 1), NaN too, has a place that is added to nothing.
#include <omp.h>

#include "tables.hpp"

namespace {

/// Bytes of a vector up to which a second thread costs more than it saves.
constexpr Size few_to_share = Size(1) << 16;

}  // namespace

template <typename T>
static void histogram(const T* a, std::int32_t* c, std::int64_t n) {
  for (Size k = 0; k < bins; ++k) c[k] = 0;
  if (n * Size(sizeof(T)) <= few_to_share) {
    count(a, c, n);
    return;
  }
  const Size threads = omp_get_max_threads();
#pragma omp parallel for reduction(+ : c[ : bins]) schedule(static)
  for (Size thread = 0; thread < threads; ++thread) {
    const Size begin = n * thread / threads;
    count(a + begin, c, n * (thread + 1) / threads - begin);
  }
}
