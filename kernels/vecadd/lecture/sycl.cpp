// vecadd: c = a + b for vectors of n elements.
// Model: a kernel written for one work item, in standard C++ with templates; a range of items covers the data.
// Work items: n, in groups of 256
// Memory: neighbouring work items read and write neighbouring elements of global memory.
// Edges: work items past the last element do nothing.
#include <sycl/sycl.hpp>

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((sycl::ext::oneapi::experimental::nd_range_kernel<1>))
void vecadd(const T* a, const T* b, T* c, std::int64_t n) {
  const auto item = sycl::ext::oneapi::this_work_item::get_nd_item<1>();
  const std::int64_t i = item.get_global_id(0);
  if (i < n) c[i] = a[i] + b[i];
}
