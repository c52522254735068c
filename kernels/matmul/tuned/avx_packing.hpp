// Panels of a and b for avx.cpp, which tiles read in order. Elements are widened while they are packed.
#pragma once

#include "avx_tile.hpp"

namespace {

/// Transposes a square of as many registers as each has lanes, in log2(lanes) passes. A pass interleaves the halves.
/// That rotates the binary index of each element, row before lane, by one digit. After all passes, row and lane have
/// changed places.
template <typename T>
void transpose(typename Simd<T>::Register* x) {
  using V = Simd<T>;
#pragma GCC unroll 4
  for (int rotated = 1; rotated < V::lanes; rotated *= 2) {
    typename V::Register y[V::lanes];
#pragma GCC unroll 8
    for (int r = 0; r < V::lanes / 2; ++r) V::interleave(x[r], x[r + V::lanes / 2], y[2 * r], y[2 * r + 1]);
#pragma GCC unroll 16
    for (int r = 0; r < V::lanes; ++r) x[r] = y[r];
  }
}

/// A register of steps along a row of a, and a single step.
template <typename P, typename T>
typename Simd<P>::Register steps_of_row(const T* a) {
  if constexpr (products<P> > 1)
    return Simd<P>::of_row(a);
  else
    return Simd<T>::load(a);
}
template <typename P, typename T>
P step_of_row(const T* a, Size left) {
  if constexpr (products<P> > 1)
    return Simd<P>::of_elements(a, least(products<P>, left));
  else
    return widen(*a);
}

/// Packs `rows` rows of a, stored by columns. Writes up to a register past the panel's end.
template <typename T, typename P>
void pack_a(const T* a, Size stride, Size rows, Size depth, P* to) {
  using V = Simd<P>;
  constexpr Size elements = V::lanes * products<P>;
  Size p = 0;
  for (; p + elements <= depth; p += elements, a += elements, to += V::lanes * rows) {
    // The last rows come first. What a store writes beyond its column is overwritten by those that follow.
    for (Size first = (rows - 1) / V::lanes * V::lanes; first >= 0; first -= V::lanes) {
      typename V::Register x[V::lanes];
#pragma GCC unroll 16
      for (Size r = 0; r < V::lanes; ++r) x[r] = steps_of_row<P>(a + least(first + r, rows - 1) * stride);
      transpose<P>(x);
#pragma GCC unroll 16
      for (Size q = 0; q < V::lanes; ++q) V::store(to + q * rows + first, x[q]);
    }
  }
  for (; p < depth; p += products<P>, a += products<P>) {
    for (Size r = 0; r < rows; ++r) *to++ = step_of_row<P>(a + r * stride, depth - p);
  }
}

/// Packs `columns` columns of b, stored by rows that are filled up to whole registers with zeros.
template <typename T>
void pack_b(const T* b, Size stride, Size depth, Size columns, Sum<T>* to) {
  using V = Simd<T>;
  const Size whole = columns / V::lanes * V::lanes;
  for (Size p = 0; p < depth; ++p, b += stride) {
    for (Size j = 0; j < whole; j += V::lanes, to += V::lanes) {
      prefetch(b + rows_ahead * stride + j);
      V::store(to, V::load(b + j));
    }
    if (whole < columns) {
      V::store(to, V::load_part(b + whole, columns - whole));
      to += V::lanes;
    }
  }
}

/// Packs a step along as many columns of b as a register has lanes. Zeros stand for missing rows and columns.
template <typename P, typename T>
typename Simd<P>::Register step_of_columns(const T* b, Size stride, Size rows, Size columns) {
  constexpr Size lanes = Simd<P>::lanes;
  if (rows >= products<P> && columns >= lanes) return Simd<P>::of_rows(b, stride);
  T part[products<P> * lanes] = {};
  for (Size p = 0; p < least(rows, products<P>); ++p) {
    for (Size j = 0; j < least(columns, lanes); ++j) part[p * lanes + j] = b[p * stride + j];
  }
  return Simd<P>::of_rows(part, lanes);
}

/// Does the same in steps of several rows, for no more columns than a tile has.
template <typename T, typename P, std::enable_if_t<(products<P> > 1), int> = 0>
void pack_b(const T* b, Size stride, Size depth, Size columns, P* to) {
  using V = Simd<P>;
  const Size registers = parts(columns, V::lanes);
  P* const offsets = to;
  typename V::Register offset[registers_of_tile];
  for (auto& each : offset) each = Words::broadcast(0);
  if (has_offsets<P>) to += registers * V::lanes;
  for (Size p = 0; p < depth; p += products<P>, b += products<P> * stride) {
    for (Size s = 0; s < registers; ++s, to += V::lanes) {
      const auto x = step_of_columns<P>(b + s * V::lanes, stride, depth - p, columns - s * V::lanes);
      V::store(to, x);
      if constexpr (has_offsets<P>) offset[s] = V::add(offset[s], V::offset_of(x));
    }
  }
  for (Size s = 0; has_offsets<P> && s < registers; ++s) V::store(offsets + s * V::lanes, offset[s]);
}

}  // namespace
