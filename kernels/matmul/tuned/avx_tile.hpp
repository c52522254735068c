// The tile of avx.cpp: which part of c stays in registers, and how a and b are multiplied into it.
#pragma once

#include <type_traits>

#include "../../simd.hpp"
#include "../../workspace.hpp"
#include "avx_dots.hpp"

namespace {

/// The tile of c that stays in registers. It has as many sums as there are registers, less those for a and b. The wider
/// the tile, the fewer elements of a are loaded for each product.
#if defined(__AVX512F__)
constexpr int registers_of_tile = 3, most_rows_of_tile = 8;  // 24 sums of 32 registers
#elif defined(__FMA__)
constexpr int registers_of_tile = 3, most_rows_of_tile = 4;  // 12 sums of 16
#else
constexpr int registers_of_tile = 2, most_rows_of_tile = 6;  // 12 sums; a product needs a register until it is added
#endif
template <typename P>
constexpr int rows_of_tile = most_rows_of_tile;
#if defined(__FMA__) && !defined(__AVX512F__)
template <>
constexpr int rows_of_tile<Pair> = 3;  // these products, too, need a register until they are added
#endif

/// How many elements a packed one of type P holds. So many steps of p are done at once.
template <typename P>
constexpr Size products = 1;
template <>
constexpr Size products<Pair> = 2;
template <>
constexpr Size products<BFloat16Pair> = 2;
template <>
constexpr Size products<Quad> = 4;

/// Whether sums begin with the first row of a panel of b.
template <typename P>
constexpr bool has_offsets = std::is_same_v<P, Quad>;

template <typename P>
constexpr Size line = 64 / sizeof(P);  // of a cache
/// How many multiply-adds before its use a line is prefetched from the second-level cache into the first.
constexpr int ahead = 240;

/// Where a tile reads a and b: both in place, or both in panels. A tile that packs b reads it in place and fills its
/// panel. One that packs the next panel of b reads both in panels.
enum class Tile { in_place, packed, packing_b, packing_next };

/// Rows of the next panel of b that a tile packs: the first before its first step, each other so many steps later.
template <typename P>
struct RowsToPack {
  const P* from;
  Size stride;
  P* to;
  Size width, count, steps;
};

/// What a tile reads. Row r of a begins at a + r * a_row, and its elements are a_column apart.
template <typename P>
struct Operands {
  const P* a;
  Size a_row, a_column;
  const P* b;
  Size b_row;
  const P* next;  ///< what a later tile will read, to be prefetched into the second-level cache
  Size next_step;
  P* panel_of_b;  ///< what a tile that packs b writes
  RowsToPack<P> rows_to_pack;
};

/// Always inline: to g++, a function that only prefetches has no effect, so it leaves out calls of it.
template <typename T, decltype(_MM_HINT_T0) where = _MM_HINT_T0>
[[gnu::always_inline]] inline void prefetch(const T* address) {
  _mm_prefetch(reinterpret_cast<const char*>(address), where);
}

/// How many rows of b are prefetched while they are packed. More would not fit in a set of the cache if rows are a power
/// of two apart.
constexpr Size rows_ahead = 8;

/// Packs a row of b. The row may begin within a line of the cache, so it is prefetched up to its last element.
template <typename P>
[[gnu::always_inline]] inline void pack_row(RowsToPack<P>& rows) {
  const P* const later = rows.from + rows_ahead * rows.stride;
  for (Size j = 0; j < rows.width; j += Simd<P>::lanes) {
    prefetch(later + j);
    Simd<P>::store(rows.to + j, Simd<P>::load(rows.from + j));
  }
  prefetch(later + rows.width - 1);
  rows.from += rows.stride;
  rows.to += rows.width;
  --rows.count;
}

/// c = a b, or c += a b where `add`, for a tile whose last register has `ragged` columns.
template <typename P, Tile kind, int rows, int registers>
[[gnu::always_inline]] inline void multiply_inline(Size depth, Operands<P> in, Sum<P>* c, Size stride, Size ragged,
                                                   bool add) {
  using V = Simd<P>;
  using C = Simd<Sum<P>>;
  constexpr Size steps_ahead = ahead / (rows * registers);
  constexpr bool packed = kind != Tile::in_place, packs_b = kind == Tile::packing_b;
  constexpr bool packs_next = kind == Tile::packing_next;
  if (packed) in.a_row = 1, in.a_column = rows;  // constants, for the compiler
  typename C::Register sum[rows][registers];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int s = 0; s < registers; ++s) {
      if constexpr (has_offsets<P>)
        sum[r][s] = V::load(in.b + s * V::lanes);
      else
        sum[r][s] = C::broadcast(0);
      prefetch(c + r * stride + s * V::lanes);
    }
  }
  if (has_offsets<P>) in.b += in.b_row;
  Size steps_to_row = 1;
  for (Size p = 0; p < depth; ++p) {
    if constexpr (packs_next) {
      if (--steps_to_row == 0) {
        pack_row(in.rows_to_pack);
        steps_to_row = in.rows_to_pack.count > 0 ? in.rows_to_pack.steps : depth;
      }
    }
    typename V::Register row[registers];
    if (packed) prefetch(in.a + steps_ahead * rows);
    prefetch<P, _MM_HINT_T1>(in.next);
#pragma GCC unroll 4
    for (int s = 0; s < registers; ++s) {
      row[s] = V::load(in.b + s * V::lanes);
      if (packs_b) V::store(in.panel_of_b + s * V::lanes, row[s]);
      if (s * V::lanes % line<P> == 0) prefetch(in.b + steps_ahead * in.b_row + s * V::lanes);
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const auto factor = V::broadcast(in.a[r * in.a_row]);
#pragma GCC unroll 4
      for (int s = 0; s < registers; ++s) sum[r][s] = V::multiply_add(factor, row[s], sum[r][s]);
    }
    in.a += in.a_column;
    in.b += in.b_row;
    if (packs_b) in.panel_of_b += registers * V::lanes;
    in.next += in.next_step;
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r, c += stride) {
#pragma GCC unroll 4
    for (int s = 0; s < registers; ++s) {
      Sum<P>* const to = c + s * V::lanes;
      if (s < registers - 1 || ragged == V::lanes)
        C::store(to, add ? C::add(C::load(to), sum[r][s]) : sum[r][s]);
      else
        C::store_part(to, add ? C::add(C::load_part(to, ragged), sum[r][s]) : sum[r][s], ragged);
    }
  }
}

template <typename P>
using MultiplyTile = void (*)(Size depth, Operands<P> in, Sum<P>* c, Size stride, Size ragged, bool add);

template <typename P, Tile kind, int rows, int registers>
void multiply_steps(Size depth, Operands<P> in, Sum<P>* c, Size stride, Size ragged, bool add) {
  multiply_inline<P, kind, rows, registers>(depth, in, c, stride, ragged, add);
}
template <typename P, Tile kind, int rows, int registers>
constexpr MultiplyTile<P> multiply_tile = multiply_steps<P, kind, rows, registers>;

#if defined(__AVX512F__)
// The same, with instructions that only some CPUs with AVX-512 have.
template <Tile kind, int rows, int registers>
[[gnu::target("avx512vnni")]] void multiply_fours(Size depth, Operands<Quad> in, std::int32_t* c, Size stride,
                                                  Size ragged, bool add) {
  multiply_inline<Quad, kind, rows, registers>(depth, in, c, stride, ragged, add);
}
template <Tile kind, int rows, int registers>
constexpr MultiplyTile<Quad> multiply_tile<Quad, kind, rows, registers> = multiply_fours<kind, rows, registers>;

template <Tile kind, int rows, int registers>
[[gnu::target("avx512bf16")]] void multiply_twos(Size depth, Operands<BFloat16Pair> in, float* c, Size stride,
                                                 Size ragged, bool add) {
  multiply_inline<BFloat16Pair, kind, rows, registers>(depth, in, c, stride, ragged, add);
}
template <Tile kind, int rows, int registers>
constexpr MultiplyTile<BFloat16Pair> multiply_tile<BFloat16Pair, kind, rows, registers> =
    multiply_twos<kind, rows, registers>;
#endif

/// The tile of a size that is known only at run time.
template <typename P, Tile kind, int most_rows = rows_of_tile<P>, int most_registers = registers_of_tile>
MultiplyTile<P> tile_of(Size rows, Size registers) {
  if constexpr (most_registers > 1) {
    if (registers < most_registers) return tile_of<P, kind, most_rows, most_registers - 1>(rows, registers);
  }
  if constexpr (most_rows > 1) {
    if (rows < most_rows) return tile_of<P, kind, most_rows - 1, most_registers>(rows, registers);
  }
  return multiply_tile<P, kind, most_rows, most_registers>;
}

}  // namespace
