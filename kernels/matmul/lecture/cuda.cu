// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Model: a kernel written for one thread of an NVIDIA GPU, which computes one element. The grid of threads covers c.
// Memory: every thread reads a row of a and a column of b from global memory, through the caches. Neighbouring threads
//   read the same element of a, and neighbours of b. The GPU coalesces those reads into few transactions.
// Edges: threads past the last column or row do nothing. A grid has at most 65,535 blocks from top to bottom. With more
//   rows, each thread also computes rows further down, one grid height apart.
// ---
// Work items: n x m, in groups of 16 x 16
#include "../../formats.hpp"

template <typename T>
__global__ void matmul(const T* a, const T* b, Sum<T>* c, long long m, long long n, long long k) {
  const long long j = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const long long first = (long long)blockIdx.y * blockDim.y + threadIdx.y;
  const long long rows = (long long)gridDim.y * blockDim.y;
  for (long long i = first; i < m && j < n; i += rows) {
    Sum<T> sum = 0;
    for (long long p = 0; p < k; ++p) sum += widen(a[i * k + p]) * widen(b[p * n + j]);
    c[i * n + j] = sum;
  }
}
