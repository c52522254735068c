// histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
// Idea: fewer items meet at a counter. On a CPU, an item finds the places of 512 elements of its chunk first, by vector
//   instructions. Then it counts them in four tables of its own by turns, and no update waits for the one before. On a
//   GPU, a group has four tables in local memory, which its items take by turns, and an item counts 16 elements.
// Model: in the end, the tables of an item or a group are added to c, by atomic updates. A first kernel sets c to 0.
// Memory: reads a once. An item of a CPU reads its chunk in order. Neighbouring items of a GPU read neighbouring elements.
// Edges: the last chunk is shorter. What lies outside of [0, 1), NaN too, has a place that is added to nothing.
// ---
// Work items of clear: 256, in groups of 256
// Work items of count_chunk on a CPU: ceil(n / 65536), in groups of 1
// Work items on a GPU: ceil(n / 16), in groups of 256
#include <sycl/sycl.hpp>

#include "../../formats.hpp"

namespace syclexp = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
using Size = std::int64_t;

constexpr int bins = 256, tables = 4, apart = bins + 1;
/// Elements of a work item on a CPU, and those whose places it finds at once.
constexpr Size chunk = 65536, block = 512;
/// Elements of a group on a GPU.
constexpr Size items = 256, each = 16;

/// Updates that other items may meet, of a group or of all.
template <sycl::memory_scope scope>
using Counter = sycl::atomic_ref<std::int32_t, sycl::memory_order::relaxed, scope>;

/// The place of an element's counter: behind all bins if it is in none. Both comparisons are made, and there is no jump.
template <typename T>
int place_of(T element) {
  const Sum<T> at = sizeof(T) == 1 ? widen(element) + 128 : bins * widen(element);
  return static_cast<int>(int(at >= 0) & int(at < bins) ? at : Sum<T>(bins));
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void clear(const T* a, std::int32_t* c, std::int64_t n) { c[get_nd_item<1>().get_global_id(0)] = 0; }

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void count_chunk(const T* a, std::int32_t* c, std::int64_t n) {
  std::int32_t table[tables * apart] = {}, place[block];
  const Size first = get_nd_item<1>().get_global_id(0) * chunk, end = sycl::min(n, first + chunk);
  for (Size begin = first; begin < end; begin += block) {
    const Size here = sycl::min(block, end - begin);
    for (Size i = 0; i < here; ++i) place[i] = place_of(a[begin + i]);
    Size i = 0;
    for (; i + tables <= here; i += tables) {
#pragma unroll
      for (int of = 0; of < tables; ++of) ++table[of * apart + place[i + of]];
    }
    for (; i < here; ++i) ++table[place[i]];
  }
  for (int k = 0; k < bins; ++k) {
    std::int32_t sum = 0;
    for (int of = 0; of < tables; ++of) sum += table[of * apart + k];
    if (sum > 0) Counter<sycl::memory_scope::device>(c[k]).fetch_add(sum);
  }
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void histogram(const T* a, std::int32_t* c, std::int64_t n) {
  static __attribute__((opencl_local)) std::int32_t table[tables * apart];
  const auto group = get_nd_item<1>().get_group();
  const Size item = get_nd_item<1>().get_local_id(0);
  for (Size at = item; at < tables * apart; at += items) table[at] = 0;
  sycl::group_barrier(group);
  const Size begin = get_nd_item<1>().get_group(0) * items * each, end = sycl::min(n, begin + items * each);
#pragma unroll 4
  for (Size i = begin + item; i < end; i += items) {
    Counter<sycl::memory_scope::work_group>(table[item % tables * apart + place_of(a[i])]).fetch_add(1);
  }
  sycl::group_barrier(group);
  std::int32_t sum = 0;
  for (int of = 0; of < tables; ++of) sum += table[of * apart + item];
  if (sum > 0) Counter<sycl::memory_scope::device>(c[item]).fetch_add(sum);
}
