// Moves a matrix by tiles in shared memory, whose squares of narrow elements are turned over in registers.
#pragma once

namespace {

using Size = long long;
constexpr int warp = 32, warps = 8;

/// An unsigned integer of so many bytes, in which an element is moved.
template <int bytes>
struct Bits;
template <>
struct Bits<1> {
  using Type = unsigned char;
};
template <>
struct Bits<2> {
  using Type = unsigned short;
};
template <>
struct Bits<4> {
  using Type = unsigned;
};
template <>
struct Bits<8> {
  using Type = unsigned long long;
};

/// Turns a square over: word r of `x` holds its row r, the first element in the lowest bits.
__device__ __forceinline__ void turn(unsigned (&x)[2]) {
  const unsigned first = __byte_perm(x[0], x[1], 0x5410);
  x[1] = __byte_perm(x[0], x[1], 0x7632);
  x[0] = first;
}
__device__ __forceinline__ void turn(unsigned (&x)[4]) {
  const unsigned upper_left = __byte_perm(x[0], x[1], 0x5140), upper_right = __byte_perm(x[0], x[1], 0x7362);
  const unsigned lower_left = __byte_perm(x[2], x[3], 0x5140), lower_right = __byte_perm(x[2], x[3], 0x7362);
  x[0] = __byte_perm(upper_left, lower_left, 0x5410);
  x[1] = __byte_perm(upper_left, lower_left, 0x7632);
  x[2] = __byte_perm(upper_right, lower_right, 0x5410);
  x[3] = __byte_perm(upper_right, lower_right, 0x7632);
}
template <typename Word>
__device__ __forceinline__ void turn(Word (&)[1]) {}

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
