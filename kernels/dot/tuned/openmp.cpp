// dot: c = the sum of a[i] b[i] for vectors of n elements.
// Idea: every thread has several vector registers of sums. vector_loop.hpp has what a thread does.
// Model: one directive divides the vectors among threads, a part for each, and another one a part among the lanes of
//   registers. Short vectors stay on one thread, since waking others takes longer. With `reduction`, threads would add
//   to the sum in any order. Here each writes to a place of its own, and these are added up in order, so that as many
//   threads give the same result every time.
// Memory: reads a and b once, in order.
// Edges: parts are whole pages, but for the last one. Some may be empty.
#include <omp.h>

#include "vector_loop.hpp"

namespace {

/// Bytes of a vector up to which a second thread costs more than it saves, and of a page, which threads do not share.
constexpr Size few_to_share = Size(1) << 18, page = 4096;
constexpr Size most_threads = 1024;

}  // namespace

template <typename T>
static void dot(const T* a, const T* b, Sum<T>* c, std::int64_t n) {
  if (n * Size(sizeof(T)) <= few_to_share) {
    c[0] = sum_of(a, b, n);
    return;
  }
  const Size threads = least(omp_get_max_threads(), most_threads), whole = page / sizeof(T);
  const Size part = parts(parts(n, threads), whole) * whole;
  Sum<T> sum[most_threads];
#pragma omp parallel for schedule(static)
  for (Size thread = 0; thread < threads; ++thread) {
    const Size begin = least(thread * part, n);
    sum[thread] = sum_of(a + begin, b + begin, least(part, n - begin));
  }
  for (Size thread = 1; thread < threads; ++thread) sum[0] += sum[thread];
  c[0] = sum[0];
}
