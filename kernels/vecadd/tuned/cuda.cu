// vecadd: c[i] = a[i] + b[i] for vectors of n elements.
// Model: a thread adds several chunks of 16 bytes, and loads them all before it adds the first. Only many loads on
//   their way at once fill the memory's bandwidth.
// Memory: neighbouring threads read and write neighbouring chunks, and tell the caches that nothing is needed again.
// Edges: elements after the last whole chunk are added one by one. If an array is not aligned, all are.
// ---
// Work items: ceil(n / 8), in groups of 256
#include "../../formats.hpp"

namespace {

constexpr int threads = 256;
/// Elements that each thread adds before it takes others.
constexpr int elements = 8;

/// How much one instruction reads or writes, an element or 16 bytes of them, and how two of these are added.
template <typename T>
struct Adder {  // of 16 bits
  using Element = unsigned short;
  using Chunk = uint4;
  static __device__ __forceinline__ Element add(Element x, Element y) {
    return narrow<T>(widen(T{x}) + widen(T{y})).bits;
  }
  static __device__ __forceinline__ unsigned add_two(unsigned x, unsigned y) {
    return add(Element(x), Element(y)) | unsigned(add(Element(x >> 16), Element(y >> 16))) << 16;
  }
  static __device__ __forceinline__ Chunk add(Chunk x, Chunk y) {
    return make_uint4(add_two(x.x, y.x), add_two(x.y, y.y), add_two(x.z, y.z), add_two(x.w, y.w));
  }
};
template <>
struct Adder<float> {
  using Element = float;
  using Chunk = float4;
  static __device__ __forceinline__ float add(float x, float y) { return x + y; }
  static __device__ __forceinline__ float4 add(float4 x, float4 y) {
    return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
  }
};
template <>
struct Adder<double> {
  using Element = double;
  using Chunk = double2;
  static __device__ __forceinline__ double add(double x, double y) { return x + y; }
  static __device__ __forceinline__ double2 add(double2 x, double2 y) { return make_double2(x.x + y.x, x.y + y.y); }
};

/// Adds chunks of `width` elements, or elements where `width` is 1.
template <typename Adder, int width, typename Chunk>
__device__ __forceinline__ void add(const Chunk* a, const Chunk* b, Chunk* c, long long chunks) {
  constexpr int each = elements / width;
  const long long stride = (long long)gridDim.x * threads * each;
  for (long long i = (long long)blockIdx.x * threads * each + threadIdx.x; i < chunks; i += stride) {
    Chunk x[each], y[each];
#pragma unroll
    for (int e = 0; e < each; ++e) {
      if (i + e * threads < chunks) x[e] = __ldcs(a + i + e * threads), y[e] = __ldcs(b + i + e * threads);
    }
#pragma unroll
    for (int e = 0; e < each; ++e) {
      if (i + e * threads < chunks) __stcs(c + i + e * threads, Adder::add(x[e], y[e]));
    }
  }
}

__device__ __forceinline__ bool aligned(const void* address) {
  return reinterpret_cast<unsigned long long>(address) % 16 == 0;
}

}  // namespace

template <typename T>
__global__ void __launch_bounds__(threads) vecadd(const T* a, const T* b, T* c, long long n) {
  using Element = typename Adder<T>::Element;
  using Chunk = typename Adder<T>::Chunk;
  constexpr int width = sizeof(Chunk) / sizeof(T);
  const auto x = reinterpret_cast<const Element*>(a), y = reinterpret_cast<const Element*>(b);
  const auto z = reinterpret_cast<Element*>(c);
  if (!aligned(a) || !aligned(b) || !aligned(c)) return add<Adder<T>, 1>(x, y, z, n);
  add<Adder<T>, width>(reinterpret_cast<const Chunk*>(a), reinterpret_cast<const Chunk*>(b),
                       reinterpret_cast<Chunk*>(c), n / width);
  const long long i = n / width * width + threadIdx.x;
  if (blockIdx.x == 0 && i < n) z[i] = Adder<T>::add(x[i], y[i]);
}
