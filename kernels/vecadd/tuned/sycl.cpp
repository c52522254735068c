// vecadd: c[i] = a[i] + b[i] for vectors of n elements.
// Model: on a CPU, a work item adds a chunk, vector by vector, and streams c past the cache. An ordinary store first
//   reads the line that it overwrites, a quarter of all traffic. On a GPU, neighbouring work items add neighbours.
// Work items of add_chunk on a CPU: ceil(n / 65536), in groups of 1
// Work items on a GPU: n, in groups of 256
// Memory: where the vectors exceed the last-level cache, or 96 MiB, c is streamed to memory. Else it stays in the cache,
//   where its reader wants it.
// Edges: one element at a time until a chunk of c is aligned, and after its last full vector. Work items of a GPU past
//   the last element do nothing.
#include <sycl/sycl.hpp>

#include "../../formats.hpp"

namespace syclexp = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
using Size = std::int64_t;

/// Elements of one work item on a CPU. It is long enough that starting it costs nothing. It covers some pages, so that
/// neighbours rarely share one.
constexpr Size chunk = 65536;

/// Of vectors with 16 elements it is known that the compiler streams them when asked to.
template <typename Element>
using Sixteen = Element __attribute__((ext_vector_type(16)));
using Floats = Sixteen<float>;
using Words = Sixteen<std::uint32_t>;
using Halfwords = Sixteen<std::uint16_t>;  // elements of the 16-bit formats

inline Words words(Floats x) { return __builtin_bit_cast(Words, x); }
inline Floats floats(Words bits) { return __builtin_bit_cast(Floats, bits); }

/// A vector of elements, and how two are added. The 16-bit formats are widened and narrowed here as in formats.hpp, of
/// whose functions the compiler makes no vectors.
template <typename T>
struct Adder {
  using Vector = Sixteen<T>;
  static Vector add(Vector x, Vector y) { return x + y; }
};
template <>
struct Adder<BFloat16> {
  using Vector = Halfwords;
  static Floats wide(Vector x) { return floats(__builtin_convertvector(x, Words) << 16); }
  static Vector add(Vector x, Vector y) {
    const Words bits = words(wide(x) + wide(y)), rounded = bits + 0x7fffu + (bits >> 16 & 1);
    const Words sum = (bits & 0x7fffffffu) > 0x7f800000u ? bits | 0x400000u : rounded;
    return __builtin_convertvector(sum >> 16, Vector);
  }
};
template <>
struct Adder<Float16> {
  using Vector = Halfwords;
  static Floats wide(Vector x) {
    const Words bits = __builtin_convertvector(x, Words), magnitude = bits & 0x7fffu;
    const Words finite = words(floats(magnitude << 13) * 0x1p112f);
    return floats(finite | (magnitude >= 0x7c00u ? Words(0x7f800000u) : Words(0)) | (bits & 0x8000u) << 16);
  }
  static Vector add(Vector x, Vector y) {
    const Words bits = words(wide(x) + wide(y)), magnitude = bits & 0x7fffffffu;
    const Words normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1)) >> 13;
    const Words small = words(floats(magnitude) + 0.5f) - 0x3f000000u;
    const Words large = magnitude > 0x7f800000u ? Words(0x7e00u) : Words(0x7c00u);
    const Words sum = magnitude < 0x38800000u ? small : magnitude < 0x47800000u ? normal : large;
    return __builtin_convertvector(sum | (bits >> 16 & 0x8000u), Vector);
  }
};
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

/// Adds the elements from `begin` to before `end`.
template <typename T, bool streamed>
void add(const T* a, const T* b, T* c, Size begin, Size end) {
  constexpr Size lanes = 16, at_once = sizeof(T) > 2 ? 4 : 1;  // more 16-bit vectors take long to compile
  Size i = begin;
  if (streamed) {
    for (; i < end && reinterpret_cast<std::uintptr_t>(c + i) % sizeof(Vector<T>) != 0; ++i) c[i] = add(a[i], b[i]);
  }
#pragma unroll at_once
  for (; i + lanes <= end; i += lanes) {
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
