// nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
//   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
// Idea: on a CPU, an item has 64 points in vectors, and `rsqrt` in place of a root and a division. On a GPU, a group
//   shares tiles of bodies.
// Model: on a CPU, the lanes of a vector are points that follow one another. On a GPU, an item has one point.
// Memory: a CPU's item copies its points, so that all x, all y and all z lie side by side. Bodies are read in order,
//   each number copied to all lanes. A group of a GPU brings a tile of bodies to local memory, a body an item, and all
//   items read them there.
// Edges: lanes and items beyond the last point compute with zeros, and are not written. An empty sum is 0.
// ---
// Work items of attract_vectors on a CPU: ceil(m / 64), in groups of 1
// Work items on a GPU: m, in groups of 256
#include <sycl/sycl.hpp>

namespace syclexp = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
using Size = std::int64_t;

/// Points of a CPU's work item, and the vectors of them that are computed together.
constexpr Size points = 64, together = 2;

template <typename T>
using Vector = sycl::vec<T, 64 / sizeof(T)>;

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::work_group_size<1>))
void attract_vectors(const T* at, const T* position, const T* mass, T* c, std::int64_t m, std::int64_t n) {
  using V = Vector<T>;
  constexpr Size lanes = 64 / sizeof(T);
  const Size begin = Size(get_nd_item<1>().get_global_id(0)) * points, end = sycl::min(m, begin + points);
  for (Size first = begin; first < end; first += together * lanes) {
    const Size there = sycl::min(together * lanes, end - first);
    V own[3][together], sum[3][together];
    for (Size axis = 0; axis < 3; ++axis) {
      for (Size k = 0; k < together; ++k) {
        sum[axis][k] = V(T(0));
        for (Size i = 0; i < lanes; ++i) {
          own[axis][k][i] = k * lanes + i < there ? at[3 * (first + k * lanes + i) + axis] : T(0);
        }
      }
    }
    for (Size j = 0; j < n; ++j) {
#pragma unroll
      for (Size k = 0; k < together; ++k) {
        const V x = V(position[3 * j]) - own[0][k], y = V(position[3 * j + 1]) - own[1][k];
        const V z = V(position[3 * j + 2]) - own[2][k];
        const V r = sycl::rsqrt(x * x + y * y + z * z + V(T(1) / 1024)), weight = V(mass[j]) * (r * (r * r));
        sum[0][k] += weight * x;
        sum[1][k] += weight * y;
        sum[2][k] += weight * z;
      }
    }
    for (Size axis = 0; axis < 3; ++axis) {
      for (Size i = 0; i < there; ++i) c[3 * (first + i) + axis] = sum[axis][i / lanes][i % lanes];
    }
  }
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void nbody(const T* at, const T* position, const T* mass, T* c, std::int64_t m, std::int64_t n) {
  constexpr Size items = 256;
  static syclexp::work_group_static<T[4][items]> memory;
  T(&tile)[4][items] = memory;
  const auto item = get_nd_item<1>();
  const Size i = item.get_global_id(0), place = item.get_local_id(0);
  T own[3], sum[3] = {};
#pragma unroll
  for (Size axis = 0; axis < 3; ++axis) own[axis] = i < m ? at[3 * i + axis] : T(0);
  for (Size first = 0; first < n; first += items) {
    if (first + place < n) {
#pragma unroll
      for (Size axis = 0; axis < 3; ++axis) tile[axis][place] = position[3 * (first + place) + axis];
      tile[3][place] = mass[first + place];
    }
    sycl::group_barrier(item.get_group());
    for (Size j = 0; j < sycl::min(items, n - first); ++j) {
      const T x = tile[0][j] - own[0], y = tile[1][j] - own[1], z = tile[2][j] - own[2];
      const T r = sycl::rsqrt(x * x + y * y + z * z + T(1) / 1024), weight = tile[3][j] * (r * (r * r));
      sum[0] += weight * x;
      sum[1] += weight * y;
      sum[2] += weight * z;
    }
    sycl::group_barrier(item.get_group());
  }
#pragma unroll
  for (Size axis = 0; axis < 3; ++axis) {
    if (i < m) c[3 * i + axis] = sum[axis];
  }
}
