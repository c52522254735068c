// attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
// Model: one thread. Instructions multiply and add in all lanes of a register. The lanes are numbers of one query, key
//   or value that follow one another. The exponential is a call for each score.
// Memory: reads all keys and values for every query, in order. No scores are stored: a row of c holds the sums.
// Edges: numbers after the last full register are taken one at a time. A score of -infinity weighs nothing. If all are,
//   0 / 0 is NaN.
#include <cstdint>

#include "../../exponentials.hpp"
#include "../../roots.hpp"
#include "../../simd.hpp"

template <typename T>
static Sum<T> product(const T* a, const T* b, std::int64_t d) {
  using V = Simd<T>;
  auto sums = V::broadcast(0);
  std::int64_t x = 0;
  for (; x + V::lanes <= d; x += V::lanes) sums = V::multiply_add(V::load(a + x), V::load(b + x), sums);
  Sum<T> lane[V::lanes], sum = 0;
  V::store(lane, sums);
  for (const Sum<T> each : lane) sum += each;
  for (; x < d; ++x) sum += widen(a[x]) * widen(b[x]);
  return sum;
}

template <typename T>
static void attention(const T* q, const T* k, const T* v, Sum<T>* c, std::int64_t m, std::int64_t d, std::int64_t n) {
  using V = Simd<T>;
  using Sums = Simd<Sum<T>>;
  for (std::int64_t i = 0; i < m; ++i) {
    Sum<T> largest = -infinity, sum = 0, *const row = c + i * d;
    for (std::int64_t x = 0; x < d; ++x) row[x] = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const Sum<T> score = product(q + i * d, k + j * d, d) / root(Sum<T>(d));
      if (score == -infinity) continue;
      const Sum<T> larger = score > largest ? score : largest;
      const Sum<T> kept = exponential(largest - larger), weight = exponential(score - larger);
      std::int64_t x = 0;
      for (; x + V::lanes <= d; x += V::lanes) {
        const auto before = Sums::multiply(Sums::load(row + x), Sums::broadcast(kept));
        Sums::store(row + x, Sums::multiply_add(Sums::broadcast(weight), V::load(v + j * d + x), before));
      }
      for (; x < d; ++x) row[x] = row[x] * kept + weight * widen(v[j * d + x]);
      sum = sum * kept + weight, largest = larger;
    }
    for (std::int64_t x = 0; x < d; ++x) row[x] /= sum;
  }
}
