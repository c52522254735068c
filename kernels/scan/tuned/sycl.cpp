// scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
// Idea: more work for each item, so that few sums are left for the second kernel. An item adds up its elements before
//   anything is written, and computes their sums when it is known what comes before them. On a CPU, it does so for four
//   at once, and one addition of the four waits for those before. Where c exceeds the cache, it goes past it.
// Model: groups cannot wait for each other. So the first kernel leaves a sum of each chunk, the second one computes
//   what comes before each, in a fixed order, and the third one the result. On a CPU, an item has a chunk. On a GPU, a
//   group has one, row by row.
// Memory: reads a twice and writes c once. An item of a CPU reads its chunk in order. Neighbouring items of a GPU read
//   and write neighbouring elements.
// Edges: on a CPU, one element at a time after the last four. Where n is 0, there still is a group, which leaves its
//   sum.
// ---
// Work items of sum_chunk on a CPU: ceil(n / 65536), in groups of 1
// Work items of scan_chunk_sums on a CPU: 1, in groups of 1
// Work items of scan_chunk on a CPU: ceil(n / 65536), in groups of 1
// Scratch on a CPU: ceil(n / 65536) + 1 elements of Sum
// Work items of sum_rows on a GPU: ceil(n / 16), in groups of 256
// Work items of scan_sums on a GPU: 256, in groups of 256
// Work items on a GPU: ceil(n / 16), in groups of 256
// Scratch on a GPU: ceil(n / 4096) + 1 elements of Sum
#include <sycl/sycl.hpp>

#include "../../formats.hpp"

namespace syclexp = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
using Size = std::int64_t;

/// Elements of a work item on a CPU, and those that are computed at once.
constexpr Size chunk = 65536, lanes = LANES, vectors = 4;
/// Elements of a group on a GPU.
constexpr Size items = 256, rows = 16, elements = items * rows;

template <typename T>
using Four = T __attribute__((ext_vector_type(4)));
/// Four that begin at any element. (It is no alias template, since clang would forget that one's alignment.)
template <typename T>
struct __attribute__((packed)) LooseFour {
  Four<T> v;
};

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void sum_chunk(const T* a, Sum<T>* c, Sum<T>* scratch, std::int64_t n) {
  Size i = get_nd_item<1>().get_global_id(0) * chunk;
  const Size end = sycl::min(n, i + chunk);
  Sum<T> sums[vectors * lanes] = {};
  for (; i + vectors * lanes <= end; i += vectors * lanes) {
#pragma unroll
    for (Size at = 0; at < vectors * lanes; ++at) sums[at] += widen(a[i + at]);
  }
  Sum<T> sum = 0;
  for (Size at = 0; at < vectors * lanes; ++at) sum += sums[at];
  for (; i < end; ++i) sum += widen(a[i]);
  scratch[get_nd_item<1>().get_global_id(0)] = sum;
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void scan_chunk_sums(const T* a, Sum<T>* c, Sum<T>* scratch, std::int64_t n) {
  Sum<T> before = 0;
  for (Size i = 0; i * chunk < n; ++i) {
    const Sum<T> sum = scratch[i];
    scratch[i] = before;
    before += sum;
  }
}

/// The sums of four elements and those before them: in pairs, then in fours.
template <typename T>
[[clang::always_inline]] Four<Sum<T>> sums_of(const T* a) {
  const Sum<T> x = widen(a[0]), y = widen(a[1]), z = widen(a[2]), w = widen(a[3]), of_two = x + y;
  return Four<Sum<T>>{x, of_two, of_two + z, of_two + (z + w)};
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void scan_chunk(const T* a, Sum<T>* c, Sum<T>* scratch, std::int64_t n) {
  using S = Sum<T>;
  const bool streamed = n * Size(sizeof(T) + sizeof(S)) > CACHE;
  Size i = get_nd_item<1>().get_global_id(0) * chunk;
  const Size end = sycl::min(n, i + chunk);
  S before = i < end ? scratch[get_nd_item<1>().get_global_id(0)] : S(0);
  for (; i < end && streamed && reinterpret_cast<std::uintptr_t>(c + i) % sizeof(Four<S>) != 0; ++i) {
    c[i] = before += widen(a[i]);
  }
  // Each kind of store has a loop of its own: compilers turn both kinds in one loop into ordinary stores.
  if (streamed) {
    for (; i + 4 <= end; i += 4) {
      const Four<S> sums = sums_of(a + i);
      __builtin_nontemporal_store(before + sums, reinterpret_cast<Four<S>*>(c + i));
      before += sums[3];
    }
  } else {
    for (; i + 4 <= end; i += 4) {
      const Four<S> sums = sums_of(a + i);
      reinterpret_cast<LooseFour<S>*>(c + i)->v = before + sums;
      before += sums[3];
    }
  }
  for (; i < end; ++i) c[i] = before += widen(a[i]);
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void sum_rows(const T* a, Sum<T>* c, Sum<T>* scratch, std::int64_t n) {
  const auto item = get_nd_item<1>();
  const Size begin = item.get_group(0) * elements, end = sycl::min(n, begin + elements);
  Sum<T> own = 0;
#pragma unroll 4
  for (Size i = begin + item.get_local_id(0); i < end; i += items) own += widen(a[i]);
  const Sum<T> sum = sycl::reduce_over_group(item.get_group(), own, sycl::plus<Sum<T>>());
  if (item.get_local_id(0) == 0) scratch[item.get_group(0)] = sum;
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void scan_sums(const T* a, Sum<T>* c, Sum<T>* scratch, std::int64_t n) {
  const auto item = get_nd_item<1>();
  Sum<T> before = 0;
  for (Size first = 0; first * elements < n; first += items) {
    const Size i = first + item.get_local_id(0);
    const Sum<T> own = i * elements < n ? scratch[i] : 0;
    const Sum<T> sum = sycl::exclusive_scan_over_group(item.get_group(), own, sycl::plus<Sum<T>>());
    if (i * elements < n) scratch[i] = before + sum;
    before += sycl::group_broadcast(item.get_group(), sum + own, items - 1);
  }
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void scan(const T* a, Sum<T>* c, Sum<T>* scratch, std::int64_t n) {
  const auto item = get_nd_item<1>();
  const Size begin = item.get_group(0) * elements, end = sycl::min(n, begin + elements);
  Sum<T> before = begin < n ? scratch[item.get_group(0)] : 0;
  for (Size row = begin; row < end; row += items) {
    const Size i = row + item.get_local_id(0);
    const Sum<T> own = i < end ? widen(a[i]) : 0;
    const Sum<T> sum = sycl::inclusive_scan_over_group(item.get_group(), own, sycl::plus<Sum<T>>());
    if (i < end) c[i] = before + sum;
    before += sycl::group_broadcast(item.get_group(), sum, items - 1);
  }
}
