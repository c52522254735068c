// vecadd: c[i] = a[i] + b[i] for vectors of n elements.
// Model: on a CPU, a work item adds a stretch, vector by vector, and streams c past the cache: an ordinary store reads
//   the line that it is about to overwrite, a quarter of all traffic. On a GPU, neighbouring work items add neighbours.
// Work items of add_stretch on a CPU: ceil(n / 65536), in groups of 1
// Work items on a GPU: n, in groups of 256
// Memory: where the vectors exceed the last-level cache, c is streamed to memory; else it stays in the cache, in which
//   its reader will want it.
// Edges: one element at a time until a stretch of c is aligned, and after its last full vector; work items of a GPU past
//   the last element do nothing.
#include <sycl/sycl.hpp>

namespace syclexp = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
using Size = std::int64_t;

/// Elements of one work item on a CPU: long enough that starting it costs nothing, and some pages, so that neighbours
/// rarely share one.
constexpr Size stretch = 65536;
/// Only vectors of 16 elements are known to be streamed as they are asked to be.
template <typename T>
using Vector = T __attribute__((ext_vector_type(16)));
/// A vector that begins at any element. (Of a name for a type, made by a template, clang would forget the alignment.)
template <typename T>
struct __attribute__((packed)) Loose {
  Vector<T> v;
};

/// The elements from `begin` to before `end`.
template <typename T, bool streamed>
void add(const T* a, const T* b, T* c, Size begin, Size end) {
  constexpr Size lanes = 16;
  Size i = begin;
  if (streamed) {
    for (; i < end && reinterpret_cast<std::uintptr_t>(c + i) % sizeof(Vector<T>) != 0; ++i) c[i] = a[i] + b[i];
  }
#pragma unroll 4
  for (; i + lanes <= end; i += lanes) {
    const Vector<T> sum = reinterpret_cast<const Loose<T>*>(a + i)->v + reinterpret_cast<const Loose<T>*>(b + i)->v;
    if (streamed) {
      __builtin_nontemporal_store(sum, reinterpret_cast<Vector<T>*>(c + i));
    } else {
      reinterpret_cast<Loose<T>*>(c + i)->v = sum;
    }
  }
  for (; i < end; ++i) c[i] = a[i] + b[i];
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void add_stretch(const T* a, const T* b, T* c, std::int64_t n) {
  const Size begin = get_nd_item<1>().get_global_id(0) * stretch, end = sycl::min(n, begin + stretch);
  if (3 * n * Size(sizeof(T)) > CACHE) {
    add<T, true>(a, b, c, begin, end);
  } else {
    add<T, false>(a, b, c, begin, end);
  }
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void vecadd(const T* a, const T* b, T* c, std::int64_t n) {
  const Size i = get_nd_item<1>().get_global_id(0);
  if (i < n) c[i] = a[i] + b[i];
}
