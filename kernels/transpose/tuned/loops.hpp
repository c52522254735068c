// How cpp and openmp move elements: by loops of which the compiler makes vector instructions.
#pragma once

#include "squares.hpp"

namespace {

/// Elements of x and y by turns.
template <typename T>
void interleave(const T* x, const T* y, T* both) {
#pragma omp simd
  for (Size at = 0; at < side<T>; ++at) {
    both[2 * at] = x[at];
    both[2 * at + 1] = y[at];
  }
}

struct Loops {
  static constexpr bool past_the_cache = false;
  static bool prefetches() { return true; }

  /// Turns a square. Rows r and r + half are interleaved, as often as it takes to halve the square down to one row: each
  /// time an element's row gives a digit of its number to its column, and its column one to its row.
  template <typename T>
  static void turn(const T* from, Size from_apart, T* to, Size to_apart) {
    constexpr Size half = side<T> / 2;
    T first[side<T> * side<T>], second[side<T> * side<T>], *x = first, *y = second;
    for (Size r = 0; r < half; ++r)
      interleave(from + r * from_apart, from + (r + half) * from_apart, x + 2 * r * side<T>);
    for (Size round = 2; round < side<T>; round *= 2) {
      for (Size r = 0; r < half; ++r) interleave(x + r * side<T>, x + (r + half) * side<T>, y + 2 * r * side<T>);
      T* const turned = y;
      y = x;
      x = turned;
    }
    for (Size r = 0; r < side<T>; ++r) std::memcpy(to + r * to_apart, x + r * side<T>, line);
  }

  template <typename T>
  static void put_line(T* to, const T* from) {
    std::memcpy(to, from, line);
  }
  static void finish() {}
};

}  // namespace
