// transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
// Idea: where rows are aligned, a thread moves words of 4 bytes in all formats. It turns 2 x 2 elements of 16 bits over
//   in registers, or 4 x 4 of 8 bits.
// Model: a block of 256 threads moves tiles whose rows have 128 bytes, in float64 256. So a warp reads and writes whole
//   cache lines in each format.
// Memory: a thread starts all its reads of a tile before it waits for the first. A warp's accesses to shared memory
//   meet 32 banks, in both directions.
// Edges: every thread goes to every barrier, so none returns early. Elements beyond the ends are neither read nor
//   written. Blocks take tiles in strides of the grid, since a tile of narrow elements is larger than their share of
//   it.
// ---
// Work items: n x ceil(m / 4), in groups of 32 x 8
#include "../../formats.hpp"
#include "cuda_squares.hpp"

namespace {

using Size = long long;
constexpr int warp = 32, warps = 8;

/// A tile of squares of `count` x `count` elements: row 0 of all squares, turned over, then their other rows.
template <typename Word, int count>
struct Tile {
  static constexpr int side = sizeof(Word) < 4 ? 128 / sizeof(Word) : 32;  // squares down and across
  static constexpr int padding = sizeof(Word) < 4 ? 4 / sizeof(Word) : 1;
  Word row[count][side][side + padding];
};

/// Moves matrices of m x n squares, of which a `Word` holds a row.
template <int count, typename Word>
__device__ __forceinline__ void move(const Word* a, Word* c, Size m, Size n, Tile<Word, count>& tile) {
  constexpr int side = Tile<Word, count>::side;
  constexpr int most = 4;  // squares that a thread reads before it writes the first
  const int x = threadIdx.x, y = threadIdx.y;
  const Size across = (n + side - 1) / side, tiles = across * ((m + side - 1) / side);
  for (Size t = (long long)blockIdx.y * gridDim.x + blockIdx.x; t < tiles; t += (long long)gridDim.x * gridDim.y) {
    const Size top = t / across * side, left = t % across * side;
#pragma unroll
    for (int s = 0; s < side; s += warp) {
      const Size i = top + s + x;
      for (int from = 0; from < side; from += most * warps) {
        Word square[most][count];
#pragma unroll
        for (int e = 0; e < most; ++e) {
          const Size j = left + from + e * warps + y;
#pragma unroll
          for (int r = 0; r < count; ++r) {
            if (i < m && j < n) square[e][r] = a[(j * count + r) * m + i];
          }
        }
#pragma unroll
        for (int e = 0; e < most; ++e) {
          turn(square[e]);
#pragma unroll
          for (int r = 0; r < count; ++r) tile.row[r][s + x][from + e * warps + y] = square[e][r];
        }
      }
    }
    __syncthreads();  // the tile is complete
#pragma unroll
    for (int s = 0; s < side; s += warp) {
      const Size j = left + s + x;
#pragma unroll 4
      for (int e = 0; e < side; e += warps) {
        const Size i = top + e + y;
#pragma unroll
        for (int r = 0; r < count; ++r) {
          if (i < m && j < n) c[(i * count + r) * n + j] = tile.row[r][e + y][s + x];
        }
      }
    }
    __syncthreads();  // nobody reads it any more
  }
}

__device__ __forceinline__ bool aligned(const void* address) {
  return reinterpret_cast<unsigned long long>(address) % 4 == 0;
}

}  // namespace

template <typename T>
__global__ void __launch_bounds__(warp* warps) transpose(const T* a, T* c, long long m, long long n) {
  using Element = typename Bits<sizeof(T)>::Type;
  constexpr int count = sizeof(T) < 4 ? 4 / sizeof(T) : 1;
  __shared__ Tile<typename Bits<count * sizeof(T)>::Type, count> tile;
  if constexpr (count > 1) {
    if (m % count == 0 && n % count == 0 && aligned(a) && aligned(c)) {
      return move<count>(reinterpret_cast<const unsigned*>(a), reinterpret_cast<unsigned*>(c), m / count, n / count,
                         tile);
    }
  }
  static_assert(sizeof(Tile<Element, 1>) == sizeof tile);
  move<1>(reinterpret_cast<const Element*>(a), reinterpret_cast<Element*>(c), m, n,
          reinterpret_cast<Tile<Element, 1>&>(tile));
}
