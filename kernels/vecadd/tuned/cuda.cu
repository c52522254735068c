// vecadd: c[i] = a[i] + b[i] for vectors of n elements.
// Model: a thread adds several chunks of 16 bytes and loads them all before it adds the first: what fills the bandwidth
//   of the memory is how much is on its way at the same time.
// Work items: ceil(n / 8), in groups of 256
// Memory: neighbouring threads read and write neighbouring chunks, and tell the caches that nothing is needed again.
// Edges: elements after the last whole chunk are added one by one, and so are all if an array is not aligned.

namespace {

constexpr int threads = 256;
/// Elements that each thread adds before it takes others.
constexpr int elements = 8;

/// As much as one instruction reads or writes.
template <typename T>
struct Widest;
template <>
struct Widest<float> {
  using Chunk = float4;
};
template <>
struct Widest<double> {
  using Chunk = double2;
};

__device__ __forceinline__ float4 operator+(float4 x, float4 y) {
  return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}
__device__ __forceinline__ double2 operator+(double2 x, double2 y) { return make_double2(x.x + y.x, x.y + y.y); }

/// Adds chunks of `width` elements, or elements where `width` is 1.
template <int width, typename Chunk>
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
      if (i + e * threads < chunks) __stcs(c + i + e * threads, x[e] + y[e]);
    }
  }
}

__device__ __forceinline__ bool aligned(const void* address) {
  return reinterpret_cast<unsigned long long>(address) % 16 == 0;
}

}  // namespace

template <typename T>
__global__ void __launch_bounds__(threads) vecadd(const T* a, const T* b, T* c, long long n) {
  using Chunk = typename Widest<T>::Chunk;
  constexpr int width = sizeof(Chunk) / sizeof(T);
  if (!aligned(a) || !aligned(b) || !aligned(c)) return add<1>(a, b, c, n);
  add<width>(reinterpret_cast<const Chunk*>(a), reinterpret_cast<const Chunk*>(b), reinterpret_cast<Chunk*>(c),
             n / width);
  const long long i = n / width * width + threadIdx.x;
  if (blockIdx.x == 0 && i < n) c[i] = a[i] + b[i];
}
