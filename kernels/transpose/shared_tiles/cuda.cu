// transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
// Idea: a block turns a tile over in memory that its threads share. So a warp reads neighbours of a row of a, and
//   writes neighbours of a row of c. Both are coalesced: in float32 these are 128 bytes each.
// Model: a block of 32 x 8 threads moves a tile of 32 x 32 elements. A thread moves four, of rows that are 8 apart.
// Memory: every element is written to shared memory once, and read once. A warp writes a row of the tile there. It
//   reads a column, whose elements all lie in the same bank in float32: these 32 reads are served one after the other.
// Edges: every thread goes to every barrier, so none returns early. Elements beyond the ends are neither read nor
//   written. Where the grid would be too high, blocks go on in strides of its height.
// ---
// Work items: n x ceil(m / 4), in groups of 32 x 8
#include "../../formats.hpp"

namespace {

constexpr int side = 32, step = 8;  // of the tile; rows between two elements of a thread, which is the block's height

}  // namespace

template <typename T>
__global__ void __launch_bounds__(side* step) transpose(const T* a, T* c, long long m, long long n) {
  __shared__ T tile[side][side];
  const int x = threadIdx.x, y = threadIdx.y;
  const long long left = (long long)blockIdx.x * side;
  for (long long top = (long long)blockIdx.y * side; top < m; top += (long long)gridDim.y * side) {
#pragma unroll
    for (int r = 0; r < side; r += step) {
      if (left + y + r < n && top + x < m) tile[y + r][x] = a[(left + y + r) * m + top + x];
    }
    __syncthreads();  // the tile is complete
#pragma unroll
    for (int r = 0; r < side; r += step) {
      if (top + y + r < m && left + x < n) c[(top + y + r) * n + left + x] = tile[x][y + r];
    }
    __syncthreads();  // nobody reads it any more
  }
}
