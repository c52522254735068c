// transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
// Model: a kernel written for one thread of an NVIDIA GPU, which moves one element. The grid of threads covers c.
// Memory: neighbouring threads write neighbours of a row of c. The GPU coalesces these writes into few transactions.
//   They read elements of a column of a, which lie m apart. For each of those the GPU moves 32 bytes.
// Edges: threads past the last column or row do nothing. A grid has at most 65,535 blocks from top to bottom. With more
//   rows, each thread also moves elements further down, one grid height apart.
// ---
// Work items: n x m, in groups of 16 x 16
#include "../../formats.hpp"

template <typename T>
__global__ void transpose(const T* a, T* c, long long m, long long n) {
  const long long j = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const long long first = (long long)blockIdx.y * blockDim.y + threadIdx.y;
  const long long rows = (long long)gridDim.y * blockDim.y;
  for (long long i = first; i < m && j < n; i += rows) c[i * n + j] = a[j * m + i];
}
