// scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
// Model: C++ with templates. A kernel is written for one work item, which has one element. Groups cannot wait for each
//   other. So each computes its own sums, a second kernel what comes before each group, and a third one adds that. The
//   kernels are free functions, an extension of oneAPI to SYCL 2020 (sycl::ext::oneapi::experimental). Intel's SYCL
//   runtime compiles them when they are first needed.
// Memory: neighbouring work items read and write neighbouring elements of global memory. A GPU coalesces these accesses
//   into few transactions. How the items of a group compute their sums is left to `inclusive_scan_over_group`.
// Edges: work items past the last element add 0. Where n is 0, there still is a group, which leaves its sum.
// ---
// Work items of scan_groups: n, in groups of 256
// Work items of scan_sums: 256, in groups of 256
// Work items: n, in groups of 256
// Scratch: ceil(n / 256) + 1 elements of Sum
#include <sycl/sycl.hpp>

#include "../../formats.hpp"

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((sycl::ext::oneapi::experimental::nd_range_kernel<1>))
void scan_groups(const T* a, Sum<T>* c, Sum<T>* scratch, std::int64_t n) {
  const auto item = sycl::ext::oneapi::this_work_item::get_nd_item<1>();
  const std::int64_t i = item.get_global_id(0);
  const Sum<T> own = i < n ? widen(a[i]) : 0;
  const Sum<T> sum = sycl::inclusive_scan_over_group(item.get_group(), own, sycl::plus<Sum<T>>());
  if (i < n) c[i] = sum;
  if (item.get_local_id(0) == 255) scratch[item.get_group(0)] = sum;
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((sycl::ext::oneapi::experimental::nd_range_kernel<1>))
void scan_sums(const T* a, Sum<T>* c, Sum<T>* scratch, std::int64_t n) {
  const auto item = sycl::ext::oneapi::this_work_item::get_nd_item<1>();
  Sum<T> before = 0;
  for (std::int64_t first = 0; first * 256 < n; first += 256) {
    const std::int64_t i = first + item.get_local_id(0);
    const Sum<T> own = i * 256 < n ? scratch[i] : 0;
    const Sum<T> sum = sycl::inclusive_scan_over_group(item.get_group(), own, sycl::plus<Sum<T>>());
    if (i * 256 < n) scratch[i] = before + sum;
    before += sycl::group_broadcast(item.get_group(), sum, 255);
  }
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((sycl::ext::oneapi::experimental::nd_range_kernel<1>))
void scan(const T* a, Sum<T>* c, Sum<T>* scratch, std::int64_t n) {
  const std::int64_t i = sycl::ext::oneapi::this_work_item::get_nd_item<1>().get_global_id(0);
  if (256 <= i && i < n) c[i] += scratch[i / 256 - 1];
}
