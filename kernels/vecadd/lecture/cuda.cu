// vecadd: c[i] = a[i] + b[i] for vectors of n elements.
// Model: a kernel written for one thread of an NVIDIA GPU, which adds one element. The grid of threads covers c.
// Memory: neighbouring threads read and write neighbouring elements of global memory. So the GPU coalesces the accesses
//   of a warp into few transactions.
// Edges: threads past the last element do nothing.
// ---
// Work items: n, in groups of 256
#include "../../formats.hpp"

template <typename T>
__global__ void vecadd(const T* a, const T* b, T* c, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = narrow<T>(widen(a[i]) + widen(b[i]));
}
