// CUDA's vectors and functions of numbers, warps and memory, expressed in SYCL. Put behind _cuda_on_sycl.hpp, it is for
// sources that are not of this project: they use more of CUDA than its own kernels do.

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

#define CUDA_ON_SYCL_TWO(T, name, bytes) \
  struct alignas(bytes) name {           \
    T x, y;                              \
  };                                     \
  inline name make_##name(T x, T y) { return {x, y}; }
#define CUDA_ON_SYCL_THREE(T, name) \
  struct name {                     \
    T x, y, z;                      \
  };                                \
  inline name make_##name(T x, T y, T z) { return {x, y, z}; }
#define CUDA_ON_SYCL_FOUR(T, name, bytes) \
  struct alignas(bytes) name {            \
    T x, y, z, w;                         \
  };                                      \
  inline name make_##name(T x, T y, T z, T w) { return {x, y, z, w}; }
CUDA_ON_SYCL_TWO(int, int2, 8)
CUDA_ON_SYCL_TWO(unsigned, uint2, 8)
CUDA_ON_SYCL_TWO(long long, longlong2, 16)
CUDA_ON_SYCL_THREE(float, float3)
CUDA_ON_SYCL_THREE(double, double3)
CUDA_ON_SYCL_THREE(int, int3)
CUDA_ON_SYCL_THREE(unsigned, uint3)
CUDA_ON_SYCL_FOUR(double, double4, 16)
CUDA_ON_SYCL_FOUR(int, int4, 16)
CUDA_ON_SYCL_FOUR(signed char, char4, 4)
CUDA_ON_SYCL_FOUR(unsigned char, uchar4, 4)
#undef CUDA_ON_SYCL_TWO
#undef CUDA_ON_SYCL_THREE
#undef CUDA_ON_SYCL_FOUR

// A function of C's that CUDA has for both formats, under its name for float and for double.
#define CUDA_ON_SYCL_OF_ONE(name)                         \
  inline float name##f(float x) { return sycl::name(x); } \
  inline double name(double x) { return sycl::name(x); }  \
  inline float name(float x) { return sycl::name(x); }
#define CUDA_ON_SYCL_OF_TWO(name)                                     \
  inline float name##f(float x, float y) { return sycl::name(x, y); } \
  inline double name(double x, double y) { return sycl::name(x, y); } \
  inline float name(float x, float y) { return sycl::name(x, y); }
CUDA_ON_SYCL_OF_ONE(fabs)
CUDA_ON_SYCL_OF_ONE(log)
CUDA_ON_SYCL_OF_ONE(log2)
CUDA_ON_SYCL_OF_ONE(log10)
CUDA_ON_SYCL_OF_ONE(log1p)
CUDA_ON_SYCL_OF_ONE(expm1)
CUDA_ON_SYCL_OF_ONE(exp10)
CUDA_ON_SYCL_OF_ONE(sin)
CUDA_ON_SYCL_OF_ONE(cos)
CUDA_ON_SYCL_OF_ONE(tan)
CUDA_ON_SYCL_OF_ONE(tanh)
CUDA_ON_SYCL_OF_ONE(cbrt)
CUDA_ON_SYCL_OF_ONE(erf)
CUDA_ON_SYCL_OF_ONE(floor)
CUDA_ON_SYCL_OF_ONE(ceil)
CUDA_ON_SYCL_OF_ONE(trunc)
CUDA_ON_SYCL_OF_ONE(round)
CUDA_ON_SYCL_OF_ONE(rint)
CUDA_ON_SYCL_OF_TWO(fmax)
CUDA_ON_SYCL_OF_TWO(fmin)
CUDA_ON_SYCL_OF_TWO(fmod)
CUDA_ON_SYCL_OF_TWO(pow)
CUDA_ON_SYCL_OF_TWO(hypot)
CUDA_ON_SYCL_OF_TWO(copysign)
#undef CUDA_ON_SYCL_OF_ONE
#undef CUDA_ON_SYCL_OF_TWO
inline float sqrtf(float x) { return sycl::sqrt(x); }
inline float rsqrtf(float x) { return sycl::rsqrt(x); }
inline float expf(float x) { return sycl::exp(x); }
inline float exp2f(float x) { return sycl::exp2(x); }
inline float fma(float x, float y, float z) { return sycl::fma(x, y, z); }
inline double pow(float x, double y) { return sycl::pow(static_cast<double>(x), y); }
inline double pow(double x, float y) { return sycl::pow(x, static_cast<double>(y)); }
inline double pow(double x, int y) { return sycl::pow(x, static_cast<decltype(x)>(y)); }
inline float pow(float x, int y) { return sycl::pow(x, static_cast<decltype(x)>(y)); }
template <typename T>
inline bool isnan(T x) {
  return sycl::isnan(x);
}
template <typename T>
inline bool isinf(T x) {
  return sycl::isinf(x);
}
template <typename T>
inline bool isfinite(T x) {
  return sycl::isfinite(x);
}

// Those that a GPU computes to fewer digits. Here they have all.
inline float __expf(float x) { return sycl::exp(x); }
inline float __logf(float x) { return sycl::log(x); }
inline float __log2f(float x) { return sycl::log2(x); }
inline float __powf(float x, float y) { return sycl::pow(x, y); }
inline float __sinf(float x) { return sycl::sin(x); }
inline float __cosf(float x) { return sycl::cos(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frsqrt_rn(float x) { return sycl::rsqrt(x); }
inline float __fsqrt_rn(float x) { return sycl::sqrt(x); }
inline float __frcp_rn(float x) { return 1 / x; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }

inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline int __mul24(int x, int y) { return x * y; }

inline int atomicSub(int* address, int value) { return cuda_on_sycl::Atomic<int>(*address).fetch_sub(value); }
inline unsigned atomicSub(unsigned* address, unsigned value) {
  return cuda_on_sycl::Atomic<unsigned>(*address).fetch_sub(value);
}
inline void __threadfence_block() { sycl::atomic_fence(sycl::memory_order::acq_rel, sycl::memory_scope::work_group); }

inline int __syncthreads_count(int holds) {
  return sycl::reduce_over_group(cuda_on_sycl::item().get_group(), holds ? 1 : 0, sycl::plus<int>());
}
inline int __syncthreads_or(int holds) { return sycl::any_of_group(cuda_on_sycl::item().get_group(), holds != 0); }
inline int __syncthreads_and(int holds) { return sycl::all_of_group(cuda_on_sycl::item().get_group(), holds != 0); }

constexpr int warpSize = 32;
inline void __syncwarp(unsigned = 0xffffffff) { sycl::group_barrier(cuda_on_sycl::item().get_sub_group()); }

// Exchanges within parts of a warp: `width` neighbours, a power of two. Past the ends of a part each has its own value.
template <typename X>
inline X __shfl_sync(unsigned, X x, unsigned lane, unsigned width = 32) {
  const unsigned own = cuda_on_sycl::lane();
  return cuda_on_sycl::of_lane(x, own - own % width + lane % width);
}
template <typename X>
inline X __shfl_down_sync(unsigned, X x, unsigned places, unsigned width) {
  const unsigned own = cuda_on_sycl::lane();
  return cuda_on_sycl::of_lane(x, own % width + places < width ? own + places : own);
}
template <typename X>
inline X __shfl_up_sync(unsigned, X x, unsigned places, unsigned width) {
  const unsigned own = cuda_on_sycl::lane();
  return cuda_on_sycl::of_lane(x, own % width < places ? own : own - places);
}
/// A part before the own one may be read, and none behind it.
template <typename X>
inline X __shfl_xor_sync(unsigned, X x, unsigned bits, unsigned width) {
  const unsigned own = cuda_on_sycl::lane(), from = own ^ bits;
  return cuda_on_sycl::of_lane(x, from < own - own % width + width ? from : own);
}

inline int __any_sync(unsigned mask, int holds) { return __ballot_sync(mask, holds) != 0; }
inline int __all_sync(unsigned mask, int holds) { return __ballot_sync(mask, holds) == mask; }
