// nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
//   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
// Model: C++ with templates. A kernel is written for one work item, which has one point. The kernel is a free function,
//   an extension of oneAPI to SYCL 2020 (sycl::ext::oneapi::experimental). Intel's SYCL runtime compiles it when it is
//   first needed.
// Memory: all work items read the same body at about the same time. A GPU coalesces such accesses into one.
// Edges: work items past the last point do nothing. An empty sum is 0.
// ---
// Work items: m, in groups of 64
#include <sycl/sycl.hpp>

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((sycl::ext::oneapi::experimental::nd_range_kernel<1>))
void nbody(const T* at, const T* position, const T* mass, T* c, std::int64_t m, std::int64_t n) {
  const std::int64_t i = sycl::ext::oneapi::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i >= m) return;
  T sum_x = 0, sum_y = 0, sum_z = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    const T x = position[3 * j] - at[3 * i], y = position[3 * j + 1] - at[3 * i + 1];
    const T z = position[3 * j + 2] - at[3 * i + 2], square = x * x + y * y + z * z + T(1) / 1024;
    const T weight = mass[j] / (square * sycl::sqrt(square));
    sum_x += weight * x;
    sum_y += weight * y;
    sum_z += weight * z;
  }
  c[3 * i] = sum_x;
  c[3 * i + 1] = sum_y;
  c[3 * i + 2] = sum_z;
}
