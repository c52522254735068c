// dot: c = the sum of a[i] b[i] for vectors of n elements.
// Idea: more work for each item, so that few sums are left for the second kernel. On a CPU, an item adds up a chunk in
//   four vectors of sums, and no addition waits for another. On a GPU, it adds 16 products, one of each row of
//   neighbours.
// Model: groups cannot wait for each other, so the first kernel leaves a sum of each. The second one adds these up in a
//   fixed order.
// Memory: reads a and b once. An item of a CPU reads its chunk in order. Neighbouring items of a GPU read neighbouring
//   elements.
// Edges: on a CPU, one product at a time after the last full vectors. Where n is 0, there still is a group, which
//   writes its sum.
// ---
// Work items of add_chunk on a CPU: ceil(n / 65536), in groups of 1
// Work items of add_sums on a CPU: 1, in groups of 1
// Scratch on a CPU: ceil(n / 65536) + 1 elements of Sum
// Work items of add_rows on a GPU: ceil(n / 16), in groups of 256
// Work items on a GPU: 256, in groups of 256
// Scratch on a GPU: ceil(n / 4096) + 1 elements of Sum
#include <sycl/sycl.hpp>

#include "../../formats.hpp"

namespace syclexp = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
using Size = std::int64_t;

/// Products of a work item on a CPU, and what it multiplies at once.
constexpr Size chunk = 65536, lanes = LANES, vectors = 4;
/// Products of a group on a GPU.
constexpr Size items = 256, rows = 16, products = items * rows;

template <typename T>
using Vector = T __attribute__((ext_vector_type(lanes)));
/// A vector that begins at any element. (It is no alias template, since clang would forget that one's alignment.)
template <typename T>
struct __attribute__((packed)) Loose {
  Vector<T> v;
};

/// Loads elements of one type, and converts them to another.
template <typename To, typename T>
Vector<To> load_as(const T* from) {
  return __builtin_convertvector(reinterpret_cast<const Loose<T>*>(from)->v, Vector<To>);
}
/// Loads and widens elements, as widen() does one. Of calls of widen() the compiler makes no vectors.
template <typename T>
Vector<Sum<T>> load(const T* from) {
  return load_as<Sum<T>>(from);
}
template <>
Vector<float> load(const BFloat16* from) {
  return reinterpret_cast<Vector<float>>(load_as<std::uint32_t>(&from->bits) << 16);
}
template <>
Vector<float> load(const Float16* from) {
  using Words = Vector<std::uint32_t>;
  const auto extended = load_as<std::int32_t>(reinterpret_cast<const std::int16_t*>(from));
  const Words bits = reinterpret_cast<Words>(extended) << 13 & 0x8fffe000u;
  const Words infinite = reinterpret_cast<Words>((bits & 0xf800000u) == 0xf800000u) & 0x7f800000u;
  const Words wide = reinterpret_cast<Words>(reinterpret_cast<Vector<float>>(bits) * 0x1p112f);
  return reinterpret_cast<Vector<float>>(wide | infinite);
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void add_chunk(const T* a, const T* b, Sum<T>* c, Sum<T>* scratch, std::int64_t n) {
  Size i = get_nd_item<1>().get_global_id(0) * chunk;
  const Size end = sycl::min(n, i + chunk);
  Vector<Sum<T>> sums[vectors] = {};
  for (; i + vectors * lanes <= end; i += vectors * lanes) {
#pragma unroll
    for (Size at = 0; at < vectors; ++at) sums[at] += load(a + i + at * lanes) * load(b + i + at * lanes);
  }
  const Vector<Sum<T>> of_lanes = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  Sum<T> sum = 0;
  for (Size lane = 0; lane < lanes; ++lane) sum += of_lanes[lane];
  for (; i < end; ++i) sum += widen(a[i]) * widen(b[i]);
  scratch[get_nd_item<1>().get_global_id(0)] = sum;
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void add_sums(const T* a, const T* b, Sum<T>* c, Sum<T>* scratch, std::int64_t n) {
  Sum<T> sum = 0;
  for (Size i = 0; i * chunk < n; ++i) sum += scratch[i];
  c[0] = sum;
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void add_rows(const T* a, const T* b, Sum<T>* c, Sum<T>* scratch, std::int64_t n) {
  const auto item = get_nd_item<1>();
  const Size begin = item.get_group(0) * products, end = sycl::min(n, begin + products);
  Sum<T> own = 0;
#pragma unroll 4
  for (Size i = begin + item.get_local_id(0); i < end; i += items) own += widen(a[i]) * widen(b[i]);
  const Sum<T> sum = sycl::reduce_over_group(item.get_group(), own, sycl::plus<Sum<T>>());
  if (item.get_local_id(0) == 0) scratch[item.get_group(0)] = sum;
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void dot(const T* a, const T* b, Sum<T>* c, Sum<T>* scratch, std::int64_t n) {
  const auto item = get_nd_item<1>();
  Sum<T> own = 0;
  for (Size i = item.get_local_id(0); i * products < n; i += items) own += scratch[i];
  const Sum<T> sum = sycl::reduce_over_group(item.get_group(), own, sycl::plus<Sum<T>>());
  if (item.get_local_id(0) == 0) c[0] = sum;
}
