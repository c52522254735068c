// transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
// Idea: a thread moves 8 neighbours of a row of a. In float32 these are the 32 bytes that a GPU moves at least. So what
//   comes for the first of them serves all 8, and no other thread has to find it in a cache. Eight reads that do not
//   wait for one another are on their way at once.
// Model: a block of 32 x 8 threads moves a block of c of 64 rows and 32 columns.
// Memory: the threads of a warp write 32 neighbours of a row of c, then of the next row. They read from 32 rows of a.
// Edges: elements past the last column or row are left out one by one. Where the grid would be too high, blocks go on
//   in strides of its height.
// ---
// Work items: n x ceil(m / 8), in groups of 32 x 8
#include "../../formats.hpp"

namespace {

constexpr int across = 32, down = 8;  // threads of a block
constexpr int each = 8;               // elements of a thread

}  // namespace

template <typename T>
__global__ void __launch_bounds__(across* down) transpose(const T* a, T* c, long long m, long long n) {
  const long long j = (long long)blockIdx.x * across + threadIdx.x;
  const long long first = ((long long)blockIdx.y * down + threadIdx.y) * each;
  const long long stride = (long long)gridDim.y * down * each;
  for (long long i = first; i < m && j < n; i += stride) {
    T run[each];
#pragma unroll
    for (int e = 0; e < each; ++e) {
      if (i + e < m) run[e] = a[j * m + i + e];
    }
#pragma unroll
    for (int e = 0; e < each; ++e) {
      if (i + e < m) c[(i + e) * n + j] = run[e];
    }
  }
}
