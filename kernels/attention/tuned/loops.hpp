// What attention computes with registers, by loops of which the compiler makes vectors: the two products of a tile, and
// weights between them. A tile is a local array whose loops have constant ends, so that its sums stay in registers
// (kernels/matmul/tuned/blocked.hpp).
#pragma once

#include "../../counting.hpp"
#include "powers.hpp"

namespace {

#if defined(__AVX512F__)
constexpr Size bytes_of_register = 64, rows_of_tile = 12;  // 24 sums of 32 registers
#elif defined(__AVX__)
constexpr Size bytes_of_register = 32, rows_of_tile = 6;  // 12 sums of 16
#else
constexpr Size bytes_of_register = 16, rows_of_tile = 6;  // the same; 16 bytes are what SSE2, Neon and VSX have
#endif

template <typename S>
struct Loops {
  /// Queries of a tile, of which each has two registers of sums.
  static constexpr Size rows = rows_of_tile, lanes = bytes_of_register / Size(sizeof(S));

  /// The scores of some queries, and of the keys of a panel. Rows of queries are d apart, and those of scores `apart`.
  template <Size rows>
  static void multiply_keys(const S* queries, Size d, const S* keys, S* scores, Size apart) {
    constexpr Size panel = 2 * lanes;
    S sum[rows][panel] = {};
    for (Size x = 0; x < d; ++x, keys += panel) {
#pragma GCC unroll 12
      for (Size r = 0; r < rows; ++r) {
        const S query = queries[r * d + x];
#pragma omp simd
        for (Size j = 0; j < panel; ++j) sum[r][j] += query * keys[j];
      }
    }
    for (Size r = 0; r < rows; ++r) {
#pragma omp simd
      for (Size j = 0; j < panel; ++j) scores[r * apart + j] = sum[r][j];
    }
  }

  /// Adds values, times the weights of some queries, to as many registers of their sums.
  template <Size rows, Size registers>
  static void add_values(const S* weights, Size apart, Size keys, const S* values, Size width, S* sums) {
    constexpr Size columns = registers * lanes;
    S sum[rows][columns];
#pragma GCC unroll 12
    for (Size r = 0; r < rows; ++r) {
#pragma omp simd
      for (Size x = 0; x < columns; ++x) sum[r][x] = sums[r * width + x];
    }
    for (Size j = 0; j < keys; ++j, values += width) {
#pragma GCC unroll 12
      for (Size r = 0; r < rows; ++r) {
        const S weight = weights[r * apart + j];
#pragma omp simd
        for (Size x = 0; x < columns; ++x) sum[r][x] += weight * values[x];
      }
    }
#pragma GCC unroll 12
    for (Size r = 0; r < rows; ++r) {
#pragma omp simd
      for (Size x = 0; x < columns; ++x) sums[r * width + x] = sum[r][x];
    }
  }

  /// The largest of some scores and of another number.
  static S largest(const S* scores, Size count, S before) {
#pragma omp simd reduction(max : before)
    for (Size j = 0; j < count; ++j) before = scores[j] > before ? scores[j] : before;
    return before;
  }

  /// Numbers times a factor.
  static void multiply(S* x, Size count, S factor) {
#pragma omp simd
    for (Size at = 0; at < count; ++at) x[at] *= factor;
  }

  /// Turns scores into weights, and adds these to totals, a lane each.
  static void exponentiate(S* scores, Size count, S limit, S* totals) {
    for (Size j = 0; j < count; j += lanes) {
#pragma omp simd
      for (Size lane = 0; lane < lanes; ++lane) {
        scores[j + lane] = power_of_two(scores[j + lane] - limit);
        totals[lane] += scores[j + lane];
      }
    }
  }

  static S power_of_two(S x) { return ::power_of_two(x); }
};

}  // namespace
