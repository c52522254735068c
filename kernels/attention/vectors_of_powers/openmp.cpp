// attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
// Idea: the exponentials too are computed in vectors. A library's is a call for each score. A polynomial is a loop of
//   multiplications and additions (../tuned/powers.hpp).
// Model: directives. `simd` lets the compiler add up in any order, in all lanes of a register. Scores are scaled so that
//   they are exponents of two.
// Memory: every thread reads all keys and values for each of its queries. The scores of a block stay in the first-level
//   cache, and so does the row of c that holds the sums.
// Edges: the last block is shorter. A score of -infinity weighs nothing. If all are, 0 / 0 is NaN.
#include <cstdint>

#include "../../counting.hpp"
#include "../../exponentials.hpp"
#include "../../roots.hpp"
#include "../tuned/powers.hpp"

template <typename T>
static void attention(const T* q, const T* k, const T* v, Sum<T>* c, std::int64_t m, std::int64_t d, std::int64_t n) {
  constexpr Size block = 128;
  const Sum<T> scale = Sum<T>(1.4426950408889634) / root(Sum<T>(d));
#pragma omp parallel for schedule(dynamic)
  for (Size i = 0; i < m; ++i) {
    Sum<T> largest = -infinity, sum = 0, weight[block];
    for (Size x = 0; x < d; ++x) c[i * d + x] = 0;
    for (Size first = 0; first < n; first += block) {
      const Size count = least(block, n - first);
      Sum<T> larger = largest;
      for (Size j = 0; j < count; ++j) {
        Sum<T> score = 0;
#pragma omp simd reduction(+ : score)
        for (Size x = 0; x < d; ++x) score += widen(q[i * d + x]) * widen(k[(first + j) * d + x]);
        weight[j] = score * scale;
        larger = weight[j] > larger ? weight[j] : larger;
      }
      const Sum<T> limit = larger == -infinity ? 0 : larger, kept = power_of_two(largest - limit);
      largest = larger;
      sum *= kept;
#pragma omp simd reduction(+ : sum)
      for (Size j = 0; j < count; ++j) {
        weight[j] = power_of_two(weight[j] - limit);
        sum += weight[j];
      }
      for (Size x = 0; x < d; ++x) c[i * d + x] *= kept;
      for (Size j = 0; j < count; ++j) {
#pragma omp simd
        for (Size x = 0; x < d; ++x) c[i * d + x] += weight[j] * widen(v[(first + j) * d + x]);
      }
    }
    for (Size x = 0; x < d; ++x) c[i * d + x] /= sum;
  }
}
