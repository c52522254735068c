// transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
// Idea: rows of the tile in shared memory are padded by 4 bytes, so that the elements of a column lie in different
//   banks. Where rows are aligned, a thread moves words of 4 bytes in all formats: it turns 2 x 2 elements of 16 bits
//   over in registers, or 4 x 4 of 8 bits.
// Model: a block of 256 threads moves tiles whose rows have 128 bytes, in float64 256. So a warp reads and writes whole
//   cache lines in each format.
// Work items: n x ceil(m / 4), in groups of 32 x 8
// Memory: a thread starts all its reads of a tile before it waits for the first. A warp's accesses to shared memory
//   meet 32 banks, in both directions.
// Edges: every thread goes to every barrier, so none returns early. Elements beyond the ends are neither read nor
//   written. Blocks take tiles in strides of the grid, since a tile of narrow elements is larger than their share of
//   it.
#include "../../formats.hpp"
#include "cuda_squares.hpp"

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
