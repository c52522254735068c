// How a and b are packed into tiles of AMX: 16 rows of 64 bytes, two tiles beside or below each other.
#pragma once

#include <cstdint>

#include "../../counting.hpp"
#include "../../formats.hpp"

namespace {

using Word = std::uint32_t;  // consecutive elements of one column in a row of a tile of b

constexpr Size rows_of_tile = 16, bytes_of_row = 64, words_of_row = 16, words_of_tile = rows_of_tile * words_of_row;
/// Rows of a, or columns of b, in a panel of two tiles.
constexpr Size side = 2 * rows_of_tile;

/// How the elements of a format become those of tiles. Each element is the sum of its parts in `parts` tiles.
template <typename T>
struct Tiles;

template <>
struct Tiles<BFloat16> {
  using Element = std::uint16_t;
  static constexpr int parts = 1;
  static Element part(BFloat16 x, int) { return x.bits; }
};

template <>
struct Tiles<Float16> {
  using Element = std::uint16_t;
  static constexpr int parts = 2;
  /// The first eight binary digits, or the three that are left. Neither part is subnormal in bfloat16, which has more
  /// exponents.
  static Element part(Float16 x, int which) {
    const float whole = widen(x), high = float_of_bits(bits_of_float(whole) & 0xffff0000u);
    return static_cast<Element>(bits_of_float(which == 0 ? high : whole - high) >> 16);
  }
};

template <>
struct Tiles<std::int8_t> {
  using Element = std::uint8_t;
  static constexpr int parts = 1;
  static Element part(std::int8_t x, int) { return static_cast<Element>(x); }
};

/// The depth of a step: elements in a row of a tile of a, and rows of b in a tile of b.
template <typename T>
constexpr Size depth_of_step = bytes_of_row / Size(sizeof(typename Tiles<T>::Element));
/// Elements of a step of a panel: first the two tiles of one part, then those of the other.
template <typename T>
constexpr Size words_of_step = 2 * words_of_tile * Tiles<T>::parts;

/// Packs up to 32 rows of a, over `depth` columns, as tiles.
template <typename T>
void pack_a(const T* a, Size stride, Size rows, Size depth, Word* to) {
  using Element = typename Tiles<T>::Element;
  constexpr Size deep = depth_of_step<T>;
  for (Size first = 0; first < depth; first += deep, to += words_of_step<T>) {
    if constexpr (Tiles<T>::parts == 1) {
      if (rows == side && depth - first >= deep) {  // just a copy, which needs neither zeros nor a row in between
        for (Size r = 0; r < side; ++r) __builtin_memcpy(to + r * words_of_row, a + r * stride + first, bytes_of_row);
        continue;
      }
    }
    for (Size r = 0; r < side; ++r) {
      T row[deep] = {};
      const Size there = r < rows ? least(deep, depth - first) : 0;
      if (there == deep) {
        __builtin_memcpy(row, a + r * stride + first, sizeof row);
      } else {
        __builtin_memcpy(row, a + r * stride + first, there * sizeof(T));
      }
      for (int part = 0; part < Tiles<T>::parts; ++part) {
        Element packed[deep];
#pragma omp simd
        for (Size p = 0; p < deep; ++p) packed[p] = Tiles<T>::part(row[p], part);
        __builtin_memcpy(to + (part * side + r) * words_of_row, packed, sizeof packed);
      }
    }
  }
}

/// Packs a step of a panel of b, all of whose elements exist.
template <typename T>
void pack_step_of_b(const T* b, Size stride, Word* to) {
  constexpr Size bits = 8 * sizeof(typename Tiles<T>::Element), in_word = 32 / bits;
  for (int part = 0; part < Tiles<T>::parts; ++part, to += words_of_tile) {
    const T* from = b;
    for (Size row = 0; row < rows_of_tile; ++row, from += in_word * stride, to += words_of_row) {
      Word words[side];
#pragma omp simd
      for (Size j = 0; j < side; ++j) {
        Word word = 0;
        for (Size p = 0; p < in_word; ++p) word |= Word(Tiles<T>::part(from[p * stride + j], part)) << (p * bits);
        words[j] = word;
      }
      __builtin_memcpy(to, words, bytes_of_row);
      __builtin_memcpy(to + words_of_tile, words + words_of_row, bytes_of_row);
    }
  }
}

/// Packs up to 32 columns of b, over `depth` rows, as tiles.
template <typename T>
void pack_b(const T* b, Size stride, Size columns, Size depth, Word* to) {
  constexpr Size deep = depth_of_step<T>;
  for (Size first = 0; first < depth; first += deep, b += deep * stride, to += words_of_step<T>) {
    const Size there = least(deep, depth - first);
    if (there == deep && columns == side) {
      pack_step_of_b(b, stride, to);
      continue;
    }
    T filled[deep * side] = {};
    for (Size p = 0; p < there; ++p) {
      if (columns == side) {  // a size that the compiler knows is copied without a call
        __builtin_memcpy(filled + p * side, b + p * stride, side * sizeof(T));
      } else {
        __builtin_memcpy(filled + p * side, b + p * stride, columns * sizeof(T));
      }
    }
    pack_step_of_b(filled, side, to);
  }
}

}  // namespace
