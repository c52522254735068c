// dot: c = the sum of a[i] b[i] for vectors of n elements.
// Idea: threads, since one core alone cannot fill the memory's bandwidth. Each takes a part, and its sum gets a place
//   of its own. In the end these are added up in order, so that as many threads give the same result every time.
// Model: eight registers of sums, so that no addition waits for another. Elements of bfloat16 and int8 are multiplied
//   in pairs. Short vectors stay on one thread, since waking others takes longer.
// Memory: reads a and b once, in order.
// Edges: after its last eight registers, a thread adds one register of products at a time, and then one product.
#include <cstdint>

#include "../../simd.hpp"
#include "../../workspace.hpp"
#include "avx_products.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace {

/// Bytes of a vector up to which a second thread costs more than it saves.
constexpr Size few_to_share = Size(1) << 18;

/// Elements of a page, which threads do not share.
template <typename T>
constexpr Size page = 4096 / sizeof(T);

constexpr Size most_threads = 1024;

}  // namespace

template <typename T>
static void dot(const T* a, const T* b, Sum<T>* c, std::int64_t n) {
#if defined(_OPENMP)
  const Size threads = n * Size(sizeof(T)) > few_to_share ? least(omp_get_max_threads(), most_threads) : 1;
#else
  const Size threads = 1;
#endif
  if (threads == 1) {
    c[0] = sum_of(a, b, n);
    return;
  }
  const Size part = parts(parts(n, threads), page<T>) * page<T>;
  Sum<T> of_part[most_threads];
#pragma omp parallel for schedule(static)
  for (Size thread = 0; thread < threads; ++thread) {
    const Size begin = least(thread * part, n);
    of_part[thread] = sum_of(a + begin, b + begin, least(part, n - begin));
  }
  for (Size thread = 1; thread < threads; ++thread) of_part[0] += of_part[thread];
  c[0] = of_part[0];
}
