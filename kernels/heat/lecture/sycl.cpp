// heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
// Model: C++ with templates. A kernel is written for one work item, which computes one element of one step. Groups
//   cannot wait for each other. So each step is a launch of its own. The kernel is a free function,
//   an extension of oneAPI to SYCL 2020 (sycl::ext::oneapi::experimental). Intel's SYCL runtime compiles it when it is
//   first needed.
// Memory: each launch reads one array and writes another one, which the next launch reads. Neighbouring work items read
//   and write neighbours of a row. A GPU coalesces these accesses into few transactions.
// Edges: work items past the last column or row do nothing. Those of the boundary copy, as all do after 0 steps.
// ---
// Work items: n x m, in groups of 16 x 16
// Repeat: steps
#include <sycl/sycl.hpp>

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((sycl::ext::oneapi::experimental::nd_range_kernel<2>))
void heat(const T* u, T* c, std::int64_t m, std::int64_t n, std::int64_t steps) {
  const auto item = sycl::ext::oneapi::this_work_item::get_nd_item<2>();
  const std::int64_t j = item.get_global_id(1);  // the last dimension is the fastest
  const std::int64_t i = item.get_global_id(0);
  if (i >= m || j >= n) return;
  const std::int64_t at = i * n + j;
  const bool stays = steps == 0 || i == 0 || i == m - 1 || j == 0 || j == n - 1;
  c[at] = stays ? u[at] : u[at] / 2 + (u[at - n] + u[at + n] + u[at - 1] + u[at + 1]) / 8;
}
