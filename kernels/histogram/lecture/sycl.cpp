// histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
// Model: C++ with templates. A kernel is written for one work item, which counts one element. Many items may meet at a
//   counter. So the update is atomic: it reads, adds and writes, and no other comes between. Groups cannot wait for each
//   other, so a first kernel sets the counters to 0. The kernels are free functions, an extension of oneAPI to SYCL 2020
//   (sycl::ext::oneapi::experimental). Intel's SYCL runtime compiles them when they are first needed.
// Memory: neighbouring work items read neighbouring elements of global memory. A GPU coalesces these accesses into few
//   transactions. Updates of one counter wait for one another.
// Edges: work items past the last element do nothing. What lies outside of [0, 1), NaN too, is counted nowhere.
// ---
// Work items of clear: 256, in groups of 256
// Work items: n, in groups of 256
#include <sycl/sycl.hpp>

#include "../../formats.hpp"

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((sycl::ext::oneapi::experimental::nd_range_kernel<1>))
void clear(const T* a, std::int32_t* c, std::int64_t n) {
  c[sycl::ext::oneapi::this_work_item::get_nd_item<1>().get_global_id(0)] = 0;
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((sycl::ext::oneapi::experimental::nd_range_kernel<1>))
void histogram(const T* a, std::int32_t* c, std::int64_t n) {
  using Counter = sycl::atomic_ref<std::int32_t, sycl::memory_order::relaxed, sycl::memory_scope::device>;
  const std::int64_t i = sycl::ext::oneapi::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i >= n) return;
  const Sum<T> at = sizeof(T) == 1 ? widen(a[i]) + 128 : 256 * widen(a[i]);
  if (at >= 0 && at < 256) Counter(c[std::int64_t(at)]).fetch_add(1);
}
