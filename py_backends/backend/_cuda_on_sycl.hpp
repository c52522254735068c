// What CUDA C++ has beyond C++, expressed in SYCL. Put before the unchanged source of a CUDA kernel, it makes a SYCL
// kernel of it. Work items stand for threads, and work groups for blocks. It is for checking kernels on a CPU.
// A warp is a sub-group of 32 work items, in blocks that are a multiple of 32 wide. Tensor cores are functions that
// exchange what these work items have. Asynchronous copies are objects of LateCopies, and a warpgroup's products those of
// LateProducts. Of a warp's own functions it has __shfl_up_sync, __shfl_down_sync, __shfl_xor_sync and __ballot_sync. Of
// atomics it has atomicAdd, atomicMax, atomicMin, atomicExch and atomicCAS, and __threadfence beside them. It lacks
// extern __shared__ and cooperative groups. What only other people's sources need follows in
// _cuda_functions_on_sycl.hpp.
#include <sycl/sycl.hpp>

namespace cuda_on_sycl {

struct Index {
  unsigned x, y, z;
};

inline sycl::nd_item<3> item() { return sycl::ext::oneapi::this_work_item::get_nd_item<3>(); }

/// CUDA's x is the fastest dimension, which is SYCL's last.
template <typename Range>
inline Index index(const Range& range) {
  return {static_cast<unsigned>(range[2]), static_cast<unsigned>(range[1]), static_cast<unsigned>(range[0])};
}

}  // namespace cuda_on_sycl

#define threadIdx (cuda_on_sycl::index(cuda_on_sycl::item().get_local_id()))
#define blockIdx (cuda_on_sycl::index(cuda_on_sycl::item().get_group().get_group_id()))
#define blockDim (cuda_on_sycl::index(cuda_on_sycl::item().get_local_range()))
#define gridDim (cuda_on_sycl::index(cuda_on_sycl::item().get_group_range()))

// Compiling for warps takes twice as long, so it is done only where they are asked for.
#if defined(WARPS)
#define CUDA_ON_SYCL_WARP [[sycl::reqd_sub_group_size(32)]]
#else
#define CUDA_ON_SYCL_WARP
#endif

#define __global__                                                                         \
  SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((sycl::ext::oneapi::experimental::nd_range_kernel<3>)) \
  CUDA_ON_SYCL_WARP
#define __device__
#define __host__
#define __constant__ inline
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ static __attribute__((opencl_local))
#define __syncthreads() sycl::group_barrier(cuda_on_sycl::item().get_group())

// CUDA's vectors are aligned to their size, up to 16 bytes.
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) double2 {
  double x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline double2 make_double2(double x, double y) { return {x, y}; }

template <typename X, typename Y>
inline std::common_type_t<X, Y> min(X x, Y y) {
  return y < x ? y : x;
}
template <typename X, typename Y>
inline std::common_type_t<X, Y> max(X x, Y y) {
  return x < y ? y : x;
}
template <typename T>
inline T __ldg(const T* address) {
  return *address;
}
// Loads and stores that tell a GPU's caches what to keep. A CPU's caches decide by themselves.
template <typename T>
inline T __ldcs(const T* address) {
  return *address;
}
template <typename T>
inline void __stcs(T* address, T value) {
  *address = value;
}
inline float fmaf(float x, float y, float z) { return sycl::fma(x, y, z); }
inline double fma(double x, double y, double z) { return sycl::fma(x, y, z); }
inline float sqrt(float x) { return sycl::sqrt(x); }
inline double sqrt(double x) { return sycl::sqrt(x); }
inline float rsqrt(float x) { return sycl::rsqrt(x); }
inline double rsqrt(double x) { return sycl::rsqrt(x); }
inline float exp(float x) { return sycl::exp(x); }
inline double exp(double x) { return sycl::exp(x); }
inline float exp2(float x) { return sycl::exp2(x); }
inline double exp2(double x) { return sycl::exp2(x); }
// Rounded to the nearest, and never fused with what is around them.
#define CUDA_ON_SYCL_ROUNDED(T, name, operation) \
  inline T name(T x, T y) { _Pragma("STDC FP_CONTRACT OFF") return x operation y; }
CUDA_ON_SYCL_ROUNDED(float, __fadd_rn, +)
CUDA_ON_SYCL_ROUNDED(float, __fsub_rn, -)
CUDA_ON_SYCL_ROUNDED(float, __fmul_rn, *)
CUDA_ON_SYCL_ROUNDED(double, __dadd_rn, +)
CUDA_ON_SYCL_ROUNDED(double, __dsub_rn, -)
CUDA_ON_SYCL_ROUNDED(double, __dmul_rn, *)
#undef CUDA_ON_SYCL_ROUNDED
inline float __fmaf_rn(float x, float y, float z) { return sycl::fma(x, y, z); }
inline double __fma_rn(double x, double y, double z) { return sycl::fma(x, y, z); }

namespace cuda_on_sycl {

/// Orders nothing else in memory, as CUDA's atomics do not.
template <typename T>
using Atomic = sycl::atomic_ref<T, sycl::memory_order::relaxed, sycl::memory_scope::device>;

}  // namespace cuda_on_sycl

// Each returns what was there before. The value has the element's type, as CUDA's have: an int is added to a float.
#define CUDA_ON_SYCL_ATOMIC(T, name, function) \
  inline T name(T* address, T value) { return cuda_on_sycl::Atomic<T>(*address).function(value); }
#define CUDA_ON_SYCL_ATOMICS_OF_WHOLE(T)                                   \
  CUDA_ON_SYCL_ATOMIC(T, atomicAdd, fetch_add)                             \
  CUDA_ON_SYCL_ATOMIC(T, atomicMax, fetch_max)                             \
  CUDA_ON_SYCL_ATOMIC(T, atomicMin, fetch_min)                             \
  CUDA_ON_SYCL_ATOMIC(T, atomicExch, exchange)                             \
  inline T atomicCAS(T* address, T old, T value) {                         \
    cuda_on_sycl::Atomic<T>(*address).compare_exchange_strong(old, value); \
    return old;                                                            \
  }
CUDA_ON_SYCL_ATOMICS_OF_WHOLE(int)
CUDA_ON_SYCL_ATOMICS_OF_WHOLE(unsigned)
CUDA_ON_SYCL_ATOMICS_OF_WHOLE(unsigned long long)
CUDA_ON_SYCL_ATOMIC(float, atomicAdd, fetch_add)
CUDA_ON_SYCL_ATOMIC(float, atomicExch, exchange)
#undef CUDA_ON_SYCL_ATOMICS_OF_WHOLE
#undef CUDA_ON_SYCL_ATOMIC
// A template, since sources define one of their own where __CUDA_ARCH__ < 600, as CUDA's guide has it.
template <typename = void>
inline double atomicAdd(double* address, double value) {
  return cuda_on_sycl::Atomic<double>(*address).fetch_add(value);
}

inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(y) << 32 | x;
  unsigned chosen = 0;
  for (int at = 0; at < 4; ++at) chosen |= (bytes >> (selector >> 4 * at & 7) * 8 & 0xff) << 8 * at;
  return chosen;
}

namespace cuda_on_sycl {

/// The asynchronous copies of a work item (cp.async), as harmful as CUDA allows. From its start on, a copy spoils what
/// it will overwrite. It arrives only when it is waited for. So a missing wait or barrier gives a wrong result here, as
/// it may on a GPU. At most 64 copies are under way. Beyond that, the oldest arrive.
class LateCopies {
 public:
  /// Starts to copy an element to shared memory, or zero where it is not `there`.
  template <typename T>
  void start(T* to, const T* from, bool there) {
    if (last_ - first_ == most_) arrive();
    __builtin_memset(to, 0xff, sizeof(T));  // NaN
    copies_[last_++ % most_] = {reinterpret_cast<char*>(to), reinterpret_cast<const char*>(there ? from : nullptr),
                                sizeof(T), group_};
  }
  void end_group() { ++group_; }
  /// Waits for all ended groups but the `latest` ones.
  template <int latest>
  void wait() {
    while (first_ < last_ && copies_[first_ % most_].group + latest < group_) arrive();
  }

 private:
  struct Copy {
    char* to;
    const char* from;
    unsigned bytes, group;
  };
  static constexpr unsigned most_ = 64;

  void arrive() {
    const Copy copy = copies_[first_++ % most_];
    for (unsigned byte = 0; byte < copy.bytes; ++byte) copy.to[byte] = copy.from ? copy.from[byte] : 0;
  }

  Copy copies_[most_];
  unsigned first_ = 0, last_ = 0, group_ = 0;
};

}  // namespace cuda_on_sycl

// Tensor cores. cuda_warp_matrices.hpp says what they do, and PTX ISA which thread of a warp has which elements.
namespace cuda_on_sycl {

/// The work item's place in its warp.
inline unsigned lane() { return item().get_sub_group().get_local_linear_id(); }

/// The value of `x` in the work item at that place in the warp.
template <typename X>
inline X of_lane(X x, unsigned lane) {
  return sycl::select_from_group(item().get_sub_group(), x, lane);
}

}  // namespace cuda_on_sycl

/// The value of `x` in the work item that many places further in the warp; past its end, the own one.
template <typename X>
inline X __shfl_down_sync(unsigned, X x, unsigned places) {
  const unsigned from = cuda_on_sycl::lane() + places;
  return cuda_on_sycl::of_lane(x, from < 32 ? from : from - places);
}

/// The value of `x` in the work item that many places before in the warp; before its beginning, the own one.
template <typename X>
inline X __shfl_up_sync(unsigned, X x, unsigned places) {
  const unsigned own = cuda_on_sycl::lane();
  return cuda_on_sycl::of_lane(x, own < places ? own : own - places);
}

/// The value of `x` in the work item whose place in the warp differs in these bits.
template <typename X>
inline X __shfl_xor_sync(unsigned, X x, unsigned bits) {
  return cuda_on_sycl::of_lane(x, cuda_on_sycl::lane() ^ bits);
}

/// A bit for each work item of the warp, that says whether it holds there.
inline unsigned __ballot_sync(unsigned mask, int holds) {
  return mask & sycl::reduce_over_group(cuda_on_sycl::item().get_sub_group(), holds ? 1u << cuda_on_sycl::lane() : 0u,
                                        sycl::bit_or<unsigned>());
}
inline int __ffs(int x) { return __builtin_ffs(x); }

/// What a work item wrote before comes before what it writes after, for whoever sees the latter.
inline void __threadfence() { sycl::atomic_fence(sycl::memory_order::acq_rel, sycl::memory_scope::device); }

namespace cuda_on_sycl {

/// Elements that are consecutive in memory.
template <typename To, typename From>
inline To bits_of(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

/// For formats that C++ lacks, the source says how they are widened.
template <typename T>
inline auto widened(T x) {
  if constexpr (std::is_arithmetic_v<T>)
    return x;
  else
    return widen(x);
}

template <typename T>
struct Word {
  T element[4 / sizeof(T)];
};

/// Adds the products of the elements in a register of a and in a register of b.
template <typename T, typename S>
inline S plus_products(S sum, unsigned a, unsigned b) {
  const auto x = bits_of<Word<T>>(a), y = bits_of<Word<T>>(b);
  for (unsigned e = 0; e < 4 / sizeof(T); ++e) sum += widened(x.element[e]) * widened(y.element[e]);
  return sum;
}

}  // namespace cuda_on_sycl

inline void load_matrices(unsigned (&to)[4], const void* row) {
  using namespace cuda_on_sycl;
  const unsigned g = lane() / 4, t = lane() % 4;
#pragma unroll 1
  for (unsigned j = 0; j < 4; ++j) {
    const auto of_row = of_lane(reinterpret_cast<std::uintptr_t>(row), 8 * j + g);
    __builtin_memcpy(&to[j], reinterpret_cast<const char*>(of_row) + 4 * t, 4);
  }
}

inline void load_transposed_matrices(unsigned (&to)[4], const void* row) {
  using namespace cuda_on_sycl;
  const unsigned g = lane() / 4, t = lane() % 4;
#pragma unroll 1
  for (unsigned j = 0; j < 4; ++j) {
    std::uint16_t pair[2];
    for (unsigned e = 0; e < 2; ++e) {
      const auto of_row = of_lane(reinterpret_cast<std::uintptr_t>(row), 8 * j + 2 * t + e);
      __builtin_memcpy(&pair[e], reinterpret_cast<const char*>(of_row) + 2 * g, 2);
    }
    to[j] = pair[0] | static_cast<unsigned>(pair[1]) << 16;
  }
}

template <typename T, typename S>
inline void multiply_add(T, S (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  using namespace cuda_on_sycl;
  const unsigned g = lane() / 4, t = lane() % 4;
#pragma unroll 1
  for (unsigned half = 0; half < 2; ++half) {
#pragma unroll 1
    for (unsigned q = 0; q < 4; ++q) {
#pragma unroll 1
      for (unsigned e = 0; e < 2; ++e) {
        const unsigned column = of_lane(b[half], 4 * (2 * t + e) + q);
        sum[e] = plus_products<T>(sum[e], of_lane(a[2 * half], 4 * g + q), column);
        sum[2 + e] = plus_products<T>(sum[2 + e], of_lane(a[2 * half + 1], 4 * g + q), column);
      }
    }
  }
}

inline void multiply_add(double, double (&sum)[4], const double (&a)[4], const double (&b)[2]) {
  using namespace cuda_on_sycl;
  const unsigned g = lane() / 4, t = lane() % 4;
#pragma unroll 1
  for (unsigned q = 0; q < 8; ++q) {
#pragma unroll 1
    for (unsigned e = 0; e < 2; ++e) {
      const double column = of_lane(b[q / 4], 4 * (2 * t + e) + q % 4);
      sum[e] += of_lane(a[q / 4 * 2], 4 * g + q % 4) * column;
      sum[2 + e] += of_lane(a[q / 4 * 2 + 1], 4 * g + q % 4) * column;
    }
  }
}

/// The products that a warpgroup has under way (wgmma), as late as CUDA allows: they are computed when they are waited
/// for, with the operands that are there by then, and only if they were committed. cuda_warpgroup_matrices.hpp says what
/// they are.
template <typename T>
class LateProducts {
 public:
  template <typename Register, int count>
  static void hold(Register (&)[count]) {}
  void begin() {}
  void commit() { committed_ = count_; }
  void start(float (&sum)[64], const void* a, unsigned chunk, const void* b) {
    products_[count_++] = {sum, a, b, chunk};
  }
  void start(std::int32_t (&sum)[32], const unsigned (&a)[4], const void* b, unsigned chunk) {
    products_[count_++] = {sum, a, b, chunk};
  }
  void wait() {
#pragma unroll 1
    for (unsigned each = 0; each < committed_; ++each) {
      if constexpr (sizeof(T) == 1)
        compute_from_registers(products_[each]);
      else
        compute(products_[each]);
    }
    count_ = committed_ = 0;
  }

 private:
  struct Product {
    void* sum;
    const void *a, *b;
    unsigned chunk;
  };

  /// What lies at a byte of lines of 128 bytes. Its place in them permutes its chunk of 16 bytes.
  template <typename Element>
  static Element at(const void* lines, unsigned byte) {
    return *reinterpret_cast<const Element*>(static_cast<const char*>(lines) + (byte ^ (byte >> 7 & 7) << 4));
  }

  static void compute(const Product& product) {
    using namespace cuda_on_sycl;
    float* const sum = static_cast<float*>(product.sum);
    const unsigned g = lane() / 4, t = lane() % 4, warp = threadIdx.y % 4;
#pragma unroll 1
    for (unsigned p = 0; p < 16; ++p) {
#pragma unroll 1
      for (unsigned e = 0; e < 64; ++e) {
        const unsigned row = 16 * warp + e % 4 / 2 * 8 + g, column = e / 4 * 8 + 2 * t + e % 2;
        const T x = at<T>(product.a, 128 * row + 16 * product.chunk + 2 * p);
        const T y = at<T>(product.b, column / 64 * 64 * 128 + 128 * p + column % 64 * 2);
        sum[e] += widened(x) * widened(y);
      }
    }
  }

  static void compute_from_registers(const Product& product) {
    using namespace cuda_on_sycl;
    std::int32_t* const sum = static_cast<std::int32_t*>(product.sum);
    const unsigned* const a = static_cast<const unsigned*>(product.a);
    const unsigned g = lane() / 4, t = lane() % 4;
#pragma unroll 1
    for (unsigned q = 0; q < 8; ++q) {
      const unsigned half = q / 4, upper = of_lane(a[2 * half], 4 * g + q % 4),
                     lower = of_lane(a[2 * half + 1], 4 * g + q % 4);
#pragma unroll 1
      for (unsigned pair = 0; pair < 16; ++pair) {
        const unsigned e = pair / 2 * 4 + pair % 2, row = pair / 2 * 8 + 2 * t + pair % 2;
        const unsigned column = at<unsigned>(product.b, 128 * row + 16 * product.chunk + 4 * q);
        sum[e] = plus_products<T>(sum[e], upper, column);
        sum[e + 2] = plus_products<T>(sum[e + 2], lower, column);
      }
    }
  }

  Product products_[16];
  unsigned count_ = 0, committed_ = 0;
};
