// transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
// Model: C++ with templates. A kernel is written for one work item, which moves one element. The range covers c. The
//   kernel is a free function, an extension of oneAPI to SYCL 2020 (sycl::ext::oneapi::experimental). Intel's SYCL
//   runtime compiles it when it is first needed.
// Memory: neighbouring work items write neighbours of a row of c. A GPU coalesces these writes into few transactions.
//   They read elements of a column of a, which lie m apart.
// Edges: work items past the last column or row do nothing.
// ---
// Work items: n x m, in groups of 16 x 16
#include <sycl/sycl.hpp>

#include "../../formats.hpp"

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((sycl::ext::oneapi::experimental::nd_range_kernel<2>))
void transpose(const T* a, T* c, std::int64_t m, std::int64_t n) {
  const auto item = sycl::ext::oneapi::this_work_item::get_nd_item<2>();
  const std::int64_t j = item.get_global_id(1);  // the last dimension is the fastest
  const std::int64_t i = item.get_global_id(0);
  if (i < m && j < n) c[i * n + j] = a[j * m + i];
}
