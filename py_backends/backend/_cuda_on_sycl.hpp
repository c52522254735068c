// What CUDA C++ has and C++ has not, said in SYCL: put before the unchanged text of a CUDA kernel, it makes a
// SYCL kernel of it, with work items for threads and work groups for blocks. For checking kernels on a CPU.
// Not here: extern __shared__, warp intrinsics, atomics, tensor cores.
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

#define __global__ SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((sycl::ext::oneapi::experimental::nd_range_kernel<3>))
#define __device__
#define __host__
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
// Loads and stores that tell a GPU's caches what to keep; a CPU's decide for themselves.
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
