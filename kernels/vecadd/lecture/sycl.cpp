// vecadd: c[i] = a[i] + b[i] for vectors of n elements.
// Model: C++ with templates. A kernel is written for one work item, which adds one element. The range covers c. The
//   kernel is a free function, an extension of oneAPI to SYCL 2020 (sycl::ext::oneapi::experimental). Intel's SYCL
//   runtime compiles it when it is first needed.
// Memory: neighbouring work items read and write neighbouring elements of global memory. A GPU coalesces these accesses
//   into few transactions.
// Edges: work items past the last element do nothing.
// ---
// Work items: n, in groups of 256
#include <sycl/sycl.hpp>

#include "../../formats.hpp"

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((sycl::ext::oneapi::experimental::nd_range_kernel<1>))
void vecadd(const T* a, const T* b, T* c, std::int64_t n) {
  const auto item = sycl::ext::oneapi::this_work_item::get_nd_item<1>();
  const std::int64_t i = item.get_global_id(0);
  if (i < n) c[i] = narrow<T>(widen(a[i]) + widen(b[i]));
}
