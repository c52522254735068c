// dot: c = the sum of a[i] b[i] for vectors of n elements.
// Model: C++ with templates. A kernel is written for one work item, which computes one product. Groups cannot wait for
//   each other. So each adds up its own products, and one group of a second kernel the sums. The kernels are free
//   functions, an extension of oneAPI to SYCL 2020 (sycl::ext::oneapi::experimental). Intel's SYCL runtime compiles
//   them when they are first needed.
// Memory: neighbouring work items read neighbouring elements of global memory. A GPU coalesces these accesses into few
//   transactions. How the items of a group add up their sums is left to `reduce_over_group`.
// Edges: work items past the last element add 0. Where n is 0, there still is a group, which writes its sum.
// ---
// Work items of add_products: n, in groups of 256
// Work items: 256, in groups of 256
// Scratch: ceil(n / 256) + 1 elements of Sum
#include <sycl/sycl.hpp>

#include "../../formats.hpp"

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((sycl::ext::oneapi::experimental::nd_range_kernel<1>))
void add_products(const T* a, const T* b, Sum<T>* c, Sum<T>* scratch, std::int64_t n) {
  const auto item = sycl::ext::oneapi::this_work_item::get_nd_item<1>();
  const std::int64_t i = item.get_global_id(0);
  const Sum<T> product = i < n ? widen(a[i]) * widen(b[i]) : 0;
  const Sum<T> sum = sycl::reduce_over_group(item.get_group(), product, sycl::plus<Sum<T>>());
  if (item.get_local_id(0) == 0) scratch[item.get_group(0)] = sum;
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((sycl::ext::oneapi::experimental::nd_range_kernel<1>))
void dot(const T* a, const T* b, Sum<T>* c, Sum<T>* scratch, std::int64_t n) {
  const auto item = sycl::ext::oneapi::this_work_item::get_nd_item<1>();
  Sum<T> own = 0;
  for (std::int64_t i = item.get_local_id(0); i * 256 < n; i += 256) own += scratch[i];
  const Sum<T> sum = sycl::reduce_over_group(item.get_group(), own, sycl::plus<Sum<T>>());
  if (item.get_local_id(0) == 0) c[0] = sum;
}
