// Stands in for the SYCL that texts include: as much of it as they use, with threads of the host for work items.
// What the CUDA texts are given for an emulation, _cuda_on_sycl.hpp, works on it unchanged.
#pragma once

#include "../work_items.hpp"

#define SYCL_EXT_ONEAPI_FUNCTION_PROPERTY(property)
#define opencl_local  // `static`, which it follows, is what makes it one for all threads of a team

namespace sycl {

/// Dimensions counted as SYCL does: the last is the fastest.
template <int dimensions>
struct id {
  std::size_t of[3];
  std::size_t operator[](int at) const { return of[dimensions - 1 - at]; }
};

template <int dimensions>
struct group {
  id<dimensions> get_group_id() const {
    const std::size_t* const of = on_threads::place.group;
    return {{of[0], of[1], of[2]}};
  }
};

/// A warp: 32 work items that follow each other.
struct sub_group {
  std::size_t get_local_linear_id() const { return on_threads::place_in_warp(); }
};

template <int dimensions>
struct nd_item {
  id<dimensions> get_local_id() const { return of(on_threads::place.local); }
  id<dimensions> get_local_range() const { return of(on_threads::place.group_size); }
  id<dimensions> get_group_range() const { return of(on_threads::place.groups); }
  group<dimensions> get_group() const { return {}; }
  sub_group get_sub_group() const { return {}; }
  std::size_t get_local_id(int at) const { return get_local_id()[at]; }
  std::size_t get_group(int at) const { return get_group().get_group_id()[at]; }
  std::size_t get_global_id(int at) const { return get_group(at) * get_local_range()[at] + get_local_id(at); }
  std::size_t get_global_range(int at) const { return get_group_range()[at] * get_local_range()[at]; }
  std::size_t get_local_linear_id() const {
    const auto& at = on_threads::place;
    return (at.local[2] * at.group_size[1] + at.local[1]) * at.group_size[0] + at.local[0];
  }

 private:
  static id<dimensions> of(const std::size_t* count) { return {{count[0], count[1], count[2]}}; }
};

template <int dimensions>
void group_barrier(group<dimensions>) {
  on_threads::barrier();
}

template <typename T>
T select_from_group(sub_group, T x, std::size_t from) {
  return static_cast<T>(on_threads::exchanged(static_cast<std::uint64_t>(x), from));
}

template <typename T>
T min(T x, T y) {
  return y < x ? y : x;
}

namespace access {
enum class address_space { global_space };
enum class decorated { yes };
}  // namespace access

/// A pointer of which lines can be prefetched, which does nothing here.
struct prefetching {
  void prefetch(std::size_t) const {}
};
template <access::address_space, access::decorated, typename T>
prefetching address_space_cast(T*) {
  return {};
}

inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }

namespace ext::oneapi {

namespace this_work_item {
template <int dimensions>
nd_item<dimensions> get_nd_item() {
  return {};
}
}  // namespace this_work_item

namespace experimental {
/// Local memory: of the group in SYCL, of the team here, since texts declare it static.
template <typename T>
struct work_group_static {
  T memory;
  operator T&() { return memory; }
};
}  // namespace experimental

}  // namespace ext::oneapi
}  // namespace sycl
