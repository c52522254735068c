// attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
// Model: an open standard for CPUs, GPUs and more. A kernel is written for one work item, which has one query. The
//   largest score so far is taken off, so that no exponential overflows. Where a larger one comes, what was summed
//   before is made smaller.
// Memory: all work items read the same key and value at about the same time. A GPU coalesces such accesses into one. No
//   scores are stored: a row of c holds the sums.
// Edges: work items past the last query do nothing. A score of -infinity weighs nothing. If all are, 0 / 0 is NaN.
// ---
// Work items: m, in groups of 64

kernel void attention(global const T* q, global const T* k, global const T* v, global Sum* c, long m, long d, long n) {
  const long i = get_global_id(0);
  if (i >= m) return;
  Sum largest = -INFINITY, sum = 0;
  for (long x = 0; x < d; ++x) c[i * d + x] = 0;
  for (long j = 0; j < n; ++j) {
    Sum score = 0;
    for (long x = 0; x < d; ++x) score += widen(q[i * d + x]) * widen(k[j * d + x]);
    score /= sqrt((Sum)d);
    if (score == -INFINITY) continue;
    const Sum larger = score > largest ? score : largest;
    const Sum kept = exp(largest - larger), weight = exp(score - larger);
    for (long x = 0; x < d; ++x) c[i * d + x] = c[i * d + x] * kept + weight * widen(v[j * d + x]);
    sum = sum * kept + weight, largest = larger;
  }
  for (long x = 0; x < d; ++x) c[i * d + x] /= sum;
}
