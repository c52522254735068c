// attention in bfloat16 by Intel's AMX: the part of avx.cpp for CPUs that have it. A core has eight tiles, each of up to
// 16 rows of 64 bytes. One instruction multiplies two of them and adds the product to a third.
//
// Idea: blocks of keys as in blocks.hpp. Scores of 32 queries and 32 keys are four tiles, and so are sums of 32 queries
//   and 32 columns. Between the two products weights are computed in vector registers, and rounded to bfloat16 once.
// Memory: queries and keys are packed by 32 over the width, values by 32 columns over 32 keys. A row of a tile of the
//   second factor has pairs of elements that are neighbours in the sum.
// Edges: widths and keys are filled up with zeros. Scores of keys that are not there are -infinity, which weigh nothing.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "../../matmul/tuned/amx_packing.hpp"
#include "../../matmul/tuned/tile_configuration.hpp"
#include "avx_registers.hpp"
#include "blocks.hpp"

namespace {

/// Tiles 0 to 3 become, or get added, the products of two tiles and two tiles. Both factors have so many steps; between
/// the steps lie so many words of the first, whose rows are so many bytes apart, and of the second.
inline void add_products(const Word* a, Size bytes_apart, Size step_of_a, const Word* b, Size step_of_b, Size steps) {
  const Word* lower = a + rows_of_tile * bytes_apart / Size(sizeof(Word));
  for (Size step = 0; step < steps; ++step, a += step_of_a, lower += step_of_a, b += step_of_b) {
    _tile_loadd(6, b, bytes_of_row);
    _tile_loadd(4, a, bytes_apart);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, lower, bytes_apart);
    _tile_dpbf16ps(2, 5, 6);
    _tile_loadd(7, b + words_of_tile, bytes_of_row);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
  }
}

inline void zero_sums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

inline void load_sums(const float* from, Size bytes_apart) {
  const float* lower = from + rows_of_tile * bytes_apart / Size(sizeof(float));
  _tile_loadd(0, from, bytes_apart);
  _tile_loadd(1, from + rows_of_tile, bytes_apart);
  _tile_loadd(2, lower, bytes_apart);
  _tile_loadd(3, lower + rows_of_tile, bytes_apart);
}

inline void store_sums(float* to, Size bytes_apart) {
  float* lower = to + rows_of_tile * bytes_apart / Size(sizeof(float));
  _tile_stored(0, to, bytes_apart);
  _tile_stored(1, to + rows_of_tile, bytes_apart);
  _tile_stored(2, lower, bytes_apart);
  _tile_stored(3, lower + rows_of_tile, bytes_apart);
}

/// Keys as columns of a second factor: a word is two neighbours of one key. So many of 32 keys are there.
inline void pack_keys(const BFloat16* k, Size keys, Size d, Word* to) {
  constexpr Size deep = depth_of_step<BFloat16>;
  for (Size first = 0; first < d; first += deep, to += words_of_step<BFloat16>) {
    const Size there = least(deep, d - first);
    for (Size j = 0; j < side; ++j) {
      Word words[rows_of_tile] = {};
      if (j < keys) __builtin_memcpy(words, k + j * d + first, there * Size(sizeof(BFloat16)));
      Word* const column = to + j / rows_of_tile * words_of_tile + j % rows_of_tile;
      for (Size row = 0; row < rows_of_tile; ++row) column[row * words_of_row] = words[row];
    }
  }
}

/// Rounds weights, which are no less than 0, to bfloat16, half to even.
inline void round_weights(const float* weights, Size count, std::uint16_t* to) {
#pragma omp simd
  for (Size j = 0; j < count; ++j) {
    const Word bits = bits_of_float(weights[j]);
    to[j] = static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
}

/// Some queries that a thread computes at a time, with all that is known of them so far.
class TiledQueries {
  using M = Registers<float>;

 public:
  /// For these a block of keys and values is read again from the second-level cache.
  static constexpr Size most = 4 * side;
  /// Keys of a block. Their scores and weights stay in the first-level cache for a panel of queries.
  static constexpr Size block = 8 * side;

  /// Queries of so many numbers, whose values take so many with padding.
  TiledQueries(Size d, Size width) : d_(d), width_(width) {
    const Size words = most * (2 * width + M::lanes + 1) + side * (apart + apart / 2);
    queries_ = workspace_of_queries.hold<Word>(words);
    if (queries_ == nullptr) return;
    sums_ = reinterpret_cast<float*>(queries_ + most * width);
    totals_ = sums_ + most * width;
    scores_ = totals_ + most * M::lanes;
    weights_ = reinterpret_cast<std::uint16_t*>(scores_ + side * apart);
    largest_ = reinterpret_cast<float*>(weights_ + side * apart);
    for (Size at = 0; at < side * apart; ++at) weights_[at] = 0;  // also of queries that are not there
  }

  /// Whether there is memory for them.
  bool there() const { return queries_ != nullptr; }

  /// Takes new ones.
  void begin(const BFloat16* q, Size count) {
    count_ = count;
    for (Size r = 0; r < count; r += side) {
      pack_a(q + r * d_, d_, least(side, count - r), d_, queries_ + r * width_ / 2);
    }
    for (Size at = 0; at < most * width_; ++at) sums_[at] = 0;
    for (Size at = 0; at < count * M::lanes; ++at) totals_[at] = 0;
    for (Size r = 0; r < count; ++r) largest_[r] = -infinity;
  }

  /// Meets a block of so many keys, and their values.
  void meet(const Word* keys, const Word* values, Size count) {
    for (Size r = 0; r < count_; r += side) meet_by_panel(r, keys, values, count);
  }

  void put(float* c) const { put_means<M>(sums_, width_, totals_, count_, d_, c); }

 private:
  /// Numbers from a row of scores or of weights to the next, which begin at other places of caches.
  static constexpr Size apart = block + 32;

  void meet_by_panel(Size first, const Word* keys, const Word* values, Size count) {
    constexpr Size step_of_rows = 2 * words_of_tile, bytes_of_scores = apart * Size(sizeof(float));
    const Size whole = parts(count, side) * side, deep = width_ / side;
    const float scale = 1.4426950408889634f / root(static_cast<float>(d_));
    const Word* const queries = queries_ + first * width_ / 2;
    __asm__ volatile("" : : : "memory");  // the intrinsics of tiles do not say what they read and write
    for (Size j = 0; j < whole; j += side) {
      zero_sums();
      add_products(queries, bytes_of_row, step_of_rows, keys + j * width_ / 2, step_of_rows, deep);
      store_sums(scores_ + j, bytes_of_scores);
    }
    __asm__ volatile("" : : : "memory");
    for (Size r = 0; r < least(side, count_ - first); ++r) {
      float* const scores = scores_ + r * apart;
      M::multiply(scores, whole, scale);
      for (Size j = count; j < whole; ++j) scores[j] = -infinity;
      weigh<M>(scores, whole, largest_[first + r], sums_ + (first + r) * width_, width_,
               totals_ + (first + r) * M::lanes);
      round_weights(scores, whole, weights_ + r * apart);
    }
    __asm__ volatile("" : : : "memory");
    const auto* const weights = reinterpret_cast<const Word*>(weights_);
    const Size bytes_of_sums = width_ * Size(sizeof(float));
    for (Size x = 0; x < width_; x += side) {
      float* const sums = sums_ + first * width_ + x;
      load_sums(sums, bytes_of_sums);
      add_products(weights, apart * 2, words_of_row, values + x * words_of_row, width_ * words_of_row, whole / side);
      store_sums(sums, bytes_of_sums);
    }
    __asm__ volatile("" : : : "memory");
  }

  Size d_, width_, count_ = 0;
  Word* queries_;
  float *sums_ = nullptr, *totals_ = nullptr, *scores_ = nullptr, *largest_ = nullptr;
  std::uint16_t* weights_ = nullptr;
};

/// False where there is no memory.
inline bool attend_by_tiles(const BFloat16* q, const BFloat16* k, const BFloat16* v, float* c, Size m, Size d, Size n,
                            [[maybe_unused]] bool share) {
  const Size width = parts(d, side) * side, panels = parts(n, side);
  Word* const keys = workspace_of_keys.hold<Word>(panels * side * width);
  if (keys == nullptr) return false;
  Word* const values = keys + panels * side * width / 2;
  bool enough_memory = true;
#pragma omp parallel reduction(&& : enough_memory) if (share)
  {
    TiledQueries some(d, width);
    enough_memory = some.there();
    configure_tiles();
#pragma omp for schedule(static)
    for (Size at = 0; at < panels; ++at) {
      const Size j = at * side, count = least(side, n - j);
      pack_keys(k + j * d, count, d, keys + j * width / 2);
      for (Size x = 0; x < d; x += side) {
        pack_b(v + j * d + x, d, least(side, d - x), count, values + j * width / 2 + x * words_of_row);
      }
    }
#pragma omp for schedule(dynamic)
    for (Size i = 0; i < m; i += TiledQueries::most) {
      if (!some.there()) continue;
      some.begin(q + i * d, least(TiledQueries::most, m - i));
      for (Size j = 0; j < n; j += TiledQueries::block) {
        some.meet(keys + j * width / 2, values + j * width / 2, least(TiledQueries::block, n - j));
      }
      some.put(c + i * d);
    }
    _tile_release();
  }
  return enough_memory;
}

}  // namespace
