// Stands in for the SYCL that texts include: as much of it as they use, with threads of the host for work items.
// What the CUDA texts are given for an emulation, _cuda_on_sycl.hpp, works on it unchanged.
#pragma once

#include <cstring>
#include <thread>

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
  std::size_t get_local_linear_id() const { return on_threads::place_in_group(); }

 private:
  static id<dimensions> of(const std::size_t* count) { return {{count[0], count[1], count[2]}}; }
};

enum class memory_order { relaxed, acq_rel };
enum class memory_scope { work_group, device };

/// ThreadSanitizer knows no fences of C++.
inline void atomic_fence(memory_order, memory_scope) { __sync_synchronize(); }

template <typename T, memory_order, memory_scope>
class atomic_ref {
 public:
  explicit atomic_ref(T& element) : element_(&element) {}
  bool compare_exchange_strong(T& old, T value) const {
    return __atomic_compare_exchange(element_, &old, &value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
  T exchange(T value) const {
    return changed([value](T) { return value; });
  }
  T fetch_add(T value) const {
    return changed([value](T old) { return old + value; });
  }
  T fetch_max(T value) const {
    return changed([value](T old) { return old < value ? value : old; });
  }
  T fetch_min(T value) const {
    return changed([value](T old) { return value < old ? value : old; });
  }

 private:
  template <typename Change>
  T changed(Change change) const {
    T old;
    __atomic_load(element_, &old, __ATOMIC_RELAXED);
    while (!compare_exchange_strong(old, change(old))) {
    }
    // Who changes nothing most often waits for another thread. Of hundreds on a few cores, that one has to run.
    if (change(old) == old) std::this_thread::yield();
    return old;
  }

  T* element_;
};

template <int dimensions>
void group_barrier(group<dimensions>) {
  on_threads::barrier();
}

template <typename T>
T select_from_group(sub_group, T x, std::size_t from) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof(T));
  bits = on_threads::exchanged(bits, from);
  std::memcpy(&x, &bits, sizeof(T));
  return x;
}

template <typename T>
struct plus {
  T operator()(T x, T y) const { return x + y; }
};

template <typename T>
struct bit_or {
  T operator()(T x, T y) const { return x | y; }
};

template <typename T, typename Operation>
T reduce_over_group(sub_group warp, T mine, Operation operation) {
  T all = select_from_group(warp, mine, 0);
  for (std::size_t item = 1; item < 32; ++item) all = operation(all, select_from_group(warp, mine, item));
  return all;
}

/// What the work items of a group bring, each up to eight bytes, while all of them have this.
template <typename T>
class Brought {
 public:
  explicit Brought(T mine) {
    static_assert(sizeof(T) <= sizeof(std::uint64_t));
    std::memcpy(on_threads::of_group() + on_threads::place_in_group(), &mine, sizeof(T));
    on_threads::barrier();
  }
  T by(std::size_t item) const {
    T theirs;
    std::memcpy(&theirs, on_threads::of_group() + item, sizeof(T));
    return theirs;
  }
  /// In the order of the work items, which is one of those that SYCL allows.
  template <typename Operation>
  T reduced(T first, std::size_t begin, std::size_t end, Operation operation) const {
    for (std::size_t item = begin; item < end; ++item) first = operation(first, by(item));
    return first;
  }
  ~Brought() { on_threads::barrier(); }  // before any brings the next
};

template <int dimensions, typename T, typename Operation>
T reduce_over_group(group<dimensions>, T mine, Operation operation) {
  const Brought<T> brought(mine);
  return brought.reduced(brought.by(0), 1, on_threads::items_of_group(), operation);
}

template <int dimensions, typename T, typename Operation>
T inclusive_scan_over_group(group<dimensions>, T mine, Operation operation) {
  const Brought<T> brought(mine);
  return brought.reduced(brought.by(0), 1, on_threads::place_in_group() + 1, operation);
}

/// Before the first comes 0, as sums have it.
template <int dimensions, typename T>
T exclusive_scan_over_group(group<dimensions>, T mine, plus<T> operation) {
  const Brought<T> brought(mine);
  return brought.reduced(T(0), 0, on_threads::place_in_group(), operation);
}

template <int dimensions, typename T>
T group_broadcast(group<dimensions>, T mine, std::size_t from) {
  return Brought<T>(mine).by(from);
}

template <typename T>
T min(T x, T y) {
  return y < x ? y : x;
}
template <typename T>
T max(T x, T y) {
  return x < y ? y : x;
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
inline float sqrt(float x) { return __builtin_sqrtf(x); }
inline double sqrt(double x) { return __builtin_sqrt(x); }
inline float rsqrt(float x) { return 1 / sqrt(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float exp(float x) { return __builtin_expf(x); }
inline double exp(double x) { return __builtin_exp(x); }
inline float exp2(float x) { return __builtin_exp2f(x); }
inline double exp2(double x) { return __builtin_exp2(x); }

#if defined(__clang__)  // of which alone texts with vectors are asked
template <typename T, int lanes>
using vec = T __attribute__((ext_vector_type(lanes)));

template <typename T, int lanes>
vec<T, lanes> rsqrt(vec<T, lanes> x) {
  for (int lane = 0; lane < lanes; ++lane) x[lane] = rsqrt(T(x[lane]));
  return x;
}
#endif

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
