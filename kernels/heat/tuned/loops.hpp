// How cpp and openmp compute a row: by a loop of which the compiler makes vector instructions.
#pragma once

#include "sweeps.hpp"

namespace {

struct Loops {
  /// Elements of some rows, from one column to before another one. Those that are read begin with the row above.
  template <typename T, Size rows>
  static void compute(const T* const (&before)[rows + 2], T* const (&after)[rows], Size begin, Size end) {
    constexpr Size line = 64 / sizeof(T);
    // Up to where a cache line begins, so that only few loads and stores have parts of two.
    const Size to_line = -Size(reinterpret_cast<std::uintptr_t>(after[0] + begin) / sizeof(T)) & (line - 1);
    const Size middle = begin + least(to_line, greatest(0, end - begin));
    compute_columns(before, after, begin, middle);
    compute_columns(before, after, middle, end);
  }

 private:
  template <typename T, Size rows>
  static void compute_columns(const T* const (&before)[rows + 2], T* const (&after)[rows], Size begin, Size end) {
#pragma omp simd
    for (Size j = begin; j < end; ++j) {
      T made[rows];
#pragma GCC unroll 4
      for (Size r = 0; r < rows; ++r) {
        const T* const row = before[r + 1];
        made[r] = row[j] / 2 + (before[r][j] + before[r + 2][j] + row[j - 1] + row[j + 1]) / 8;
      }
#pragma GCC unroll 4
      for (Size r = 0; r < rows; ++r) after[r][j] = made[r];
    }
  }
};

}  // namespace
