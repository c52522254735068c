// dot: c = the sum of a[i] b[i] for vectors of n elements.
// Model: an algorithm of the standard library multiplies pairs of elements, and adds up what it gets. Its policy,
//   `par_unseq`, allows it to divide them among threads that share memory. Each part has a sum of its own.
// Memory: every thread reads parts of a and b, each in order.
// Edges: none; the algorithm ends at the end of a, and an empty sum is its first value, 0.
// ---
// Order: any, as parts are divided and threads end. So two calls may differ in their last bits.
#include <cstdint>
#include <execution>
#include <functional>
#include <numeric>

#include "../../formats.hpp"

template <typename T>
static void dot(const T* a, const T* b, Sum<T>* c, std::int64_t n) {
  c[0] = std::transform_reduce(std::execution::par_unseq, a, a + n, b, Sum<T>(0), std::plus<>(),
                               [](T x, T y) { return Sum<T>(widen(x) * widen(y)); });
}
