// vecadd: c[i] = a[i] + b[i] for vectors of n elements.
// Model: on a CPU, a work item adds a chunk, vector by vector, and streams c past the cache. An ordinary store first
//   reads the line that it overwrites, a quarter of all traffic. On a GPU, neighbouring work items add neighbours.
// Memory: where the vectors exceed the last-level cache, or 96 MiB, c is streamed to memory. Else it stays in the cache,
//   where its reader wants it.
// Edges: one element at a time until a chunk of c is aligned, and after its last full vector. Work items of a GPU past
//   the last element do nothing.
// ---
// Work items of add_chunk on a CPU: ceil(n / 65536), in groups of 1
// Work items on a GPU: n, in groups of 256
#include <sycl/sycl.hpp>

#include "pairs.hpp"

namespace syclexp = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
using Size = std::int64_t;

/// Elements of one work item on a CPU. It is long enough that starting it costs nothing. It covers some pages, so that
/// neighbours rarely share one.
constexpr Size chunk = 65536;

/// Of vectors with 16 elements it is known that the compiler streams them when asked to.
template <typename Element>
using Sixteen = Element __attribute__((ext_vector_type(16)));

/// A vector of elements, and how two are added.
template <typename T>
struct Adder {
  using Vector = Sixteen<T>;
  static Vector add(Vector x, Vector y) { return x + y; }
};
/// The 16-bit formats.
template <typename T>
struct AdderOfPairs {
  struct Types {
    using Floats = Sixteen<float>;
    using Words = Sixteen<std::uint32_t>;
    using Integers = Sixteen<std::int32_t>;
  };
  using Vector = typename Types::Words;
  static Vector add(Vector x, Vector y) { return Pairs<T, Types>::add(x, y); }
};
template <>
struct Adder<BFloat16> : AdderOfPairs<BFloat16> {};
template <>
struct Adder<Float16> : AdderOfPairs<Float16> {};
template <typename T>
using Vector = typename Adder<T>::Vector;

/// A vector that begins at any element. (It is no alias template, since clang would forget that one's alignment.)
template <typename T>
struct __attribute__((packed)) Loose {
  Vector<T> v;
};

template <typename T>
T add(T x, T y) {
  return narrow<T>(widen(x) + widen(y));
}

/// Prefetches an element's line. In the 16-bit formats so many instructions stand between loads that too few of them
/// are under way. So what comes a page later is prefetched, where the CPU's own prefetching ends.
template <typename T>
void fetch(const T* from) {
  constexpr auto where = sycl::access::address_space::global_space;
  sycl::address_space_cast<where, sycl::access::decorated::yes>(from).prefetch(1);
}

/// Adds the elements from `begin` to before `end`.
template <typename T, bool streamed>
void add(const T* a, const T* b, T* c, Size begin, Size end) {
  constexpr Size lanes = sizeof(Vector<T>) / sizeof(T), ahead = 4096 / sizeof(T);
  constexpr Size unrolled = sizeof(T) > 2 ? 4 : 1;  // more 16-bit vectors take long to compile
  Size i = begin;
  if (streamed) {
    for (; i < end && reinterpret_cast<std::uintptr_t>(c + i) % sizeof(Vector<T>) != 0; ++i) c[i] = add(a[i], b[i]);
  }
#pragma unroll unrolled
  for (; i + lanes <= end; i += lanes) {
    if (streamed && sizeof(T) == 2) {
      fetch(a + i + ahead);
      fetch(b + i + ahead);
    }
    const Vector<T> x = reinterpret_cast<const Loose<T>*>(a + i)->v, y = reinterpret_cast<const Loose<T>*>(b + i)->v;
    const Vector<T> sum = Adder<T>::add(x, y);
    if (streamed) {
      __builtin_nontemporal_store(sum, reinterpret_cast<Vector<T>*>(c + i));
    } else {
      reinterpret_cast<Loose<T>*>(c + i)->v = sum;
    }
  }
  for (; i < end; ++i) c[i] = add(a[i], b[i]);
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void add_chunk(const T* a, const T* b, T* c, std::int64_t n) {
  const Size begin = get_nd_item<1>().get_global_id(0) * chunk, end = sycl::min(n, begin + chunk);
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
  if (i < n) c[i] = add(a[i], b[i]);
}
