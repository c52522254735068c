// attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
// Model: one thread. Instructions multiply and add in all lanes of a register. The lanes are numbers of one query, key
//   or value that follow one another. The exponential is a call for each score.
// Memory: reads all keys and values for every query, in order. No scores are stored: a row of c holds the sums.
// Edges: the last register of a row is loaded and stored in part. A score of -infinity weighs nothing. If all are, 0 / 0
//   is NaN.
#include <cstdint>

#include "../../counting.hpp"
#include "../../exponentials.hpp"
#include "../../roots.hpp"
#include "../../simd.hpp"

template <typename T>
static void attention(const T* q, const T* k, const T* v, Sum<T>* c, std::int64_t m, std::int64_t d, std::int64_t n) {
  using V = Simd<T>;
  using Sums = Simd<Sum<T>>;
  for (std::int64_t i = 0; i < m; ++i) {
    Sum<T> largest = -infinity, sum = 0, *const row = c + i * d;
    for (std::int64_t x = 0; x < d; ++x) row[x] = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      auto products = V::broadcast(0);
      for (std::int64_t x = 0; x < d; x += V::lanes) {
        const std::int64_t count = least(V::lanes, d - x);
        products = V::multiply_add(V::load_part(q + i * d + x, count), V::load_part(k + j * d + x, count), products);
      }
      Sum<T> lane[V::lanes], score = 0;
      Sums::store(lane, products);
      for (const Sum<T> each : lane) score += each / root(Sum<T>(d));
      if (score == -infinity) continue;
      const Sum<T> larger = score > largest ? score : largest;
      const Sum<T> kept = exponential(largest - larger), weight = exponential(score - larger);
      for (std::int64_t x = 0; x < d; x += V::lanes) {
        const std::int64_t count = least(V::lanes, d - x);
        const auto before = Sums::multiply(Sums::load_part(row + x, count), Sums::broadcast(kept));
        const auto value = V::load_part(v + j * d + x, count);
        Sums::store_part(row + x, Sums::multiply_add(Sums::broadcast(weight), value, before), count);
      }
      sum = sum * kept + weight, largest = larger;
    }
    for (std::int64_t x = 0; x < d; ++x) row[x] /= sum;
  }
}
