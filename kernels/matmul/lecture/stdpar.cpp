// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Model: an algorithm of the standard library calls a function for each row of c. Its policy, `par`, allows it to
//   divide the rows among threads that share memory.
// Memory: every thread reads its rows of a, and all of b by columns, whose elements lie n apart. It writes its rows of
//   c.
// Edges: none; the algorithm and the loops end at their sizes, and an empty sum is 0.
#include <algorithm>
#include <cstdint>
#include <execution>

#include "../../formats.hpp"
#include "../../indices.hpp"

template <typename T>
static void matmul(const T* a, const T* b, Sum<T>* c, std::int64_t m, std::int64_t n, std::int64_t k) {
  std::for_each(std::execution::par, Index(0), Index(m), [=](std::int64_t i) {
    for (std::int64_t j = 0; j < n; ++j) {
      Sum<T> sum = 0;
      for (std::int64_t p = 0; p < k; ++p) sum += widen(a[i * k + p]) * widen(b[p * n + j]);
      c[i * n + j] = sum;
    }
  });
}
