// multiply: c = a b, for one tile of each: whether joint_matrix works on this device.
// Memory: a has 16 rows of 64 elements. A row of b has 16 columns of 4 rows each, as a tile of AMX wants them.
// ---
// Work items: 16, in groups of 16
#include <sycl/sycl.hpp>

#include <cstdint>

namespace syclexp = sycl::ext::oneapi::experimental;
namespace matrix = sycl::ext::oneapi::experimental::matrix;
using sycl::access::address_space, sycl::access::decorated;
using Group = sycl::sub_group;

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::sub_group_size<16>))
void multiply(const T* a, const T* b, std::int32_t* c) {
  const auto global = [](auto* first) {
    return sycl::address_space_cast<address_space::global_space, decorated::no>(first);
  };
  const auto group = sycl::ext::oneapi::this_work_item::get_nd_item<1>().get_sub_group();
  matrix::joint_matrix<Group, T, matrix::use::a, 16, 64, matrix::layout::row_major> tile_of_a;
  matrix::joint_matrix<Group, T, matrix::use::b, 64, 16, matrix::layout::ext_intel_packed> tile_of_b;
  matrix::joint_matrix<Group, std::int32_t, matrix::use::accumulator, 16, 16> tile_of_c;
  matrix::joint_matrix_fill(group, tile_of_c, 0);
  matrix::joint_matrix_load(group, tile_of_a, global(a), 64);
  matrix::joint_matrix_load(group, tile_of_b, global(b), 64);
  matrix::joint_matrix_mad(group, tile_of_c, tile_of_a, tile_of_b, tile_of_c);
  matrix::joint_matrix_store(group, tile_of_c, global(c), 16, matrix::layout::row_major);
}
