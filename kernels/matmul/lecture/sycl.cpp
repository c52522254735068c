// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Model: C++ with templates. A kernel is written for one work item, which computes one element. The range covers c. The
//   kernel is a free function, an extension of oneAPI to SYCL 2020 (sycl::ext::oneapi::experimental). Intel's SYCL
//   runtime compiles it when it is first needed.
// Memory: every work item reads a row of a and a column of b from global memory, through the caches. Neighbours read
//   the same element of a, and neighbours of b. A GPU coalesces those reads into few transactions.
// Edges: work items past the last column or row do nothing.
// ---
// Work items: n x m, in groups of 16 x 16
#include <sycl/sycl.hpp>

#include "../../formats.hpp"

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((sycl::ext::oneapi::experimental::nd_range_kernel<2>))
void matmul(const T* a, const T* b, Sum<T>* c, std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto item = sycl::ext::oneapi::this_work_item::get_nd_item<2>();
  const std::int64_t j = item.get_global_id(1);  // the last dimension is the fastest
  const std::int64_t i = item.get_global_id(0);
  if (i < m && j < n) {
    Sum<T> sum = 0;
    for (std::int64_t p = 0; p < k; ++p) sum += widen(a[i * k + p]) * widen(b[p * n + j]);
    c[i * n + j] = sum;
  }
}
