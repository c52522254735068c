// attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
// Model: an algorithm of the standard library calls a function for each query. Its policy, `par`, allows it to divide
//   the queries among threads that share memory. The largest score so far is taken off, so that no exponential
//   overflows. Where a larger one comes, what was summed before is made smaller.
// Memory: every thread reads all keys and values for each of its queries, in order. No scores are stored: a row of c
//   holds the sums.
// Edges: a score of -infinity weighs nothing. If all are, 0 / 0 is NaN.
#include <algorithm>
#include <cstdint>
#include <execution>

#include "../../exponentials.hpp"
#include "../../formats.hpp"
#include "../../indices.hpp"
#include "../../roots.hpp"

template <typename T>
static void attention(const T* q, const T* k, const T* v, Sum<T>* c, std::int64_t m, std::int64_t d, std::int64_t n) {
  std::for_each(std::execution::par, Index(0), Index(m), [=](std::int64_t i) {
    Sum<T> largest = -infinity, sum = 0;
    for (std::int64_t x = 0; x < d; ++x) c[i * d + x] = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      Sum<T> score = 0;
      for (std::int64_t x = 0; x < d; ++x) score += widen(q[i * d + x]) * widen(k[j * d + x]);
      score /= root(Sum<T>(d));
      if (score == -infinity) continue;
      const Sum<T> larger = score > largest ? score : largest;
      const Sum<T> kept = exponential(largest - larger), weight = exponential(score - larger);
      for (std::int64_t x = 0; x < d; ++x) c[i * d + x] = c[i * d + x] * kept + weight * widen(v[j * d + x]);
      sum = sum * kept + weight, largest = larger;
    }
    for (std::int64_t x = 0; x < d; ++x) c[i * d + x] /= sum;
  });
}
