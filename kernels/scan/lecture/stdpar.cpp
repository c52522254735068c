// scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
// Model: an algorithm of the standard library widens elements, and adds them up in order. Its policy, `par_unseq`,
//   allows it to divide them among threads that share memory. Each part is then added up before what comes before it is
//   known, and read once more when it is.
// Memory: every thread reads and writes parts of a and c, each in order.
// Edges: none; the algorithm ends at the end of a.
// ---
// Order: any, as parts are divided and threads end. So two calls may differ in their last bits.
#include <cstdint>
#include <execution>
#include <functional>
#include <numeric>

#include "../../formats.hpp"

template <typename T>
static void scan(const T* a, Sum<T>* c, std::int64_t n) {
  std::transform_inclusive_scan(std::execution::par_unseq, a, a + n, c, std::plus<>(),
                                [](T x) { return Sum<T>(widen(x)); });
}
