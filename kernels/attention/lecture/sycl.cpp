// attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
// Model: C++ with templates. A kernel is written for one work item, which has one query. The largest score so far is
//   taken off, so that no exponential overflows. Where a larger one comes, what was summed before is made smaller. The
//   kernel is a free function, an extension of oneAPI to SYCL 2020 (sycl::ext::oneapi::experimental). Intel's SYCL
//   runtime compiles it when it is first needed.
// Memory: all work items read the same key and value at about the same time. A GPU coalesces such accesses into one. No
//   scores are stored: a row of c holds the sums.
// Edges: work items past the last query do nothing. A score of -infinity weighs nothing. If all are, 0 / 0 is NaN.
// ---
// Work items: m, in groups of 64
#include <sycl/sycl.hpp>

#include "../../formats.hpp"

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((sycl::ext::oneapi::experimental::nd_range_kernel<1>))
void attention(const T* q, const T* k, const T* v, Sum<T>* c, std::int64_t m, std::int64_t d, std::int64_t n) {
  const std::int64_t i = sycl::ext::oneapi::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i >= m) return;
  constexpr float infinity = __builtin_huge_valf();
  Sum<T> largest = -infinity, sum = 0;
  for (std::int64_t x = 0; x < d; ++x) c[i * d + x] = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    Sum<T> score = 0;
    for (std::int64_t x = 0; x < d; ++x) score += widen(q[i * d + x]) * widen(k[j * d + x]);
    score /= sycl::sqrt(Sum<T>(d));
    if (score == -infinity) continue;
    const Sum<T> larger = score > largest ? score : largest;
    const Sum<T> kept = sycl::exp(largest - larger), weight = sycl::exp(score - larger);
    for (std::int64_t x = 0; x < d; ++x) c[i * d + x] = c[i * d + x] * kept + weight * widen(v[j * d + x]);
    sum = sum * kept + weight, largest = larger;
  }
  for (std::int64_t x = 0; x < d; ++x) c[i * d + x] /= sum;
}
