// transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
// Model: an algorithm of the standard library calls a function for each row of c. Its policy, `par`, allows it to
//   divide the rows among threads that share memory.
// Memory: every thread writes its rows of c in order, and reads its columns of a, whose elements lie m apart.
// Edges: none; the algorithm and the loop end at their sizes.
#include <algorithm>
#include <cstdint>
#include <execution>

#include "../../indices.hpp"

template <typename T>
static void transpose(const T* a, T* c, std::int64_t m, std::int64_t n) {
  std::for_each(std::execution::par, Index(0), Index(m), [=](std::int64_t i) {
    for (std::int64_t j = 0; j < n; ++j) c[i * n + j] = a[j * m + i];
  });
}
