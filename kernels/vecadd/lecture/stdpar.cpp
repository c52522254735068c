// vecadd: c[i] = a[i] + b[i] for vectors of n elements.
// Model: an algorithm of the standard library calls a function for each pair of elements. Its policy, `par_unseq`,
//   allows it to divide them among threads that share memory, and to take several at once as a vector.
// Memory: every thread reads and writes parts of a, b and c, each in order.
// Edges: none; the algorithm ends at the end of a.
#include <algorithm>
#include <cstdint>
#include <execution>

#include "../../formats.hpp"

template <typename T>
static void vecadd(const T* a, const T* b, T* c, std::int64_t n) {
  std::transform(std::execution::par_unseq, a, a + n, b, c, [](T x, T y) { return narrow<T>(widen(x) + widen(y)); });
}
