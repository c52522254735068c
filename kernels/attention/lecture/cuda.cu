// attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
// Model: a kernel written for one thread of an NVIDIA GPU, which has one query. The largest score so far is taken off,
//   so that no exponential overflows. Where a larger one comes, what was summed before is made smaller.
// Memory: all threads read the same key and value at about the same time. The GPU coalesces such accesses of a warp into
//   one. No scores are stored: a row of c holds the sums.
// Edges: threads past the last query do nothing. A score of -infinity weighs nothing. If all are, 0 / 0 is NaN.
// ---
// Work items: m, in groups of 128
#include "../../formats.hpp"

template <typename T>
__global__ void attention(const T* q, const T* k, const T* v, Sum<T>* c, long long m, long long d, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= m) return;
  const Sum<T> infinity = __builtin_huge_valf();
  Sum<T> largest = -infinity, sum = 0;
  for (long long x = 0; x < d; ++x) c[i * d + x] = 0;
  for (long long j = 0; j < n; ++j) {
    Sum<T> score = 0;
    for (long long x = 0; x < d; ++x) score += widen(q[i * d + x]) * widen(k[j * d + x]);
    score /= sqrt(Sum<T>(d));
    if (score == -infinity) continue;
    const Sum<T> larger = score > largest ? score : largest;
    const Sum<T> kept = exp(largest - larger), weight = exp(score - larger);
    for (long long x = 0; x < d; ++x) c[i * d + x] = c[i * d + x] * kept + weight * widen(v[j * d + x]);
    sum = sum * kept + weight, largest = larger;
  }
  for (long long x = 0; x < d; ++x) c[i * d + x] /= sum;
}
