// transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
// Idea: rows of the tile in shared memory are padded by 4 bytes, in float64 by 8, so that the elements of a column lie
//   in different banks. A row of a tile has 128 bytes in each format, a whole cache line, and in float64 256.
// Model: a block of 256 threads moves tiles. A thread starts four reads before it waits for the first.
// Memory: a warp's accesses to shared memory meet 32 banks, in both directions.
// Edges: every thread goes to every barrier, so none returns early. Elements beyond the ends are neither read nor
//   written. Blocks take tiles in strides of the grid, since a tile of narrow elements is larger than their share of
//   it.
// ---
// Work items: n x ceil(m / 4), in groups of 32 x 8
#include "../../formats.hpp"

namespace {

using Size = long long;
constexpr int warp = 32, warps = 8;

template <typename Word>
struct Tile {
  static constexpr int side = sizeof(Word) < 4 ? 128 / sizeof(Word) : 32;  // elements down and across
  static constexpr int padding = sizeof(Word) < 4 ? 4 / sizeof(Word) : 1;
  Word row[side][side + padding];
};

}  // namespace

template <typename T>
__global__ void __launch_bounds__(warp* warps) transpose(const T* a, T* c, long long m, long long n) {
  constexpr int side = Tile<T>::side;
  constexpr int most = 4;  // elements that a thread reads before it writes the first
  __shared__ Tile<T> tile;
  const int x = threadIdx.x, y = threadIdx.y;
  const Size across = (n + side - 1) / side, tiles = across * ((m + side - 1) / side);
  for (Size t = (long long)blockIdx.y * gridDim.x + blockIdx.x; t < tiles; t += (long long)gridDim.x * gridDim.y) {
    const Size top = t / across * side, left = t % across * side;
#pragma unroll
    for (int s = 0; s < side; s += warp) {
      const Size i = top + s + x;
      for (int from = 0; from < side; from += most * warps) {
        T own[most];
#pragma unroll
        for (int e = 0; e < most; ++e) {
          const Size j = left + from + e * warps + y;
          if (i < m && j < n) own[e] = a[j * m + i];
        }
#pragma unroll
        for (int e = 0; e < most; ++e) tile.row[s + x][from + e * warps + y] = own[e];
      }
    }
    __syncthreads();  // the tile is complete
#pragma unroll
    for (int s = 0; s < side; s += warp) {
      const Size j = left + s + x;
#pragma unroll 4
      for (int e = 0; e < side; e += warps) {
        const Size i = top + e + y;
        if (i < m && j < n) c[i * n + j] = tile.row[e + y][s + x];
      }
    }
    __syncthreads();  // nobody reads it any more
  }
}
