// The two products of attention, for a few queries and a block of keys, and the packing that both need.
#pragma once

#include "../../counting.hpp"
#include "../../simd.hpp"

namespace {

/// Queries of a tile, whose sums stay in registers beside each other, two for each query.
#if defined(__AVX512F__)
constexpr Size rows_of_tile = 12;
#else
constexpr Size rows_of_tile = 4;
#endif
template <typename S>
constexpr Size panel = 2 * Simd<S>::lanes;

/// Keys as columns, in panels of two registers: element x of key j is at [j / panel][x][j % panel]. Keys beyond the last
/// are zeros.
template <typename T, typename S>
void pack_keys(const T* k, Size keys, Size d, S* to) {
  for (Size x = 0; x < d; ++x) {
    for (Size j = 0; j < panel<S>; ++j) to[x * panel<S> + j] = j < keys ? widen(k[j * d + x]) : S(0);
  }
}

/// Values as they are, in rows of whole registers.
template <typename T, typename S>
void pack_values(const T* v, Size keys, Size d, Size width, S* to) {
  for (Size j = 0; j < keys; ++j) {
    for (Size x = 0; x < width; ++x) to[j * width + x] = x < d ? widen(v[j * d + x]) : S(0);
  }
}

/// The scores of some queries, and of the keys of a panel. Rows of queries are d apart, and those of scores `apart`.
template <typename S, Size rows>
void multiply_keys(const S* queries, Size d, const S* keys, S* scores, Size apart) {
  using V = Simd<S>;
  typename V::Register sum[rows][2];
#pragma GCC unroll 12
  for (Size r = 0; r < rows; ++r) sum[r][0] = sum[r][1] = V::broadcast(0);
  for (Size x = 0; x < d; ++x, keys += panel<S>) {
    const auto first = V::load(keys), second = V::load(keys + V::lanes);
#pragma GCC unroll 12
    for (Size r = 0; r < rows; ++r) {
      const auto query = V::broadcast(queries[r * d + x]);
      sum[r][0] = V::multiply_add(query, first, sum[r][0]);
      sum[r][1] = V::multiply_add(query, second, sum[r][1]);
    }
  }
#pragma GCC unroll 12
  for (Size r = 0; r < rows; ++r) {
    V::store(scores + r * apart, sum[r][0]);
    V::store(scores + r * apart + V::lanes, sum[r][1]);
  }
}

/// Adds values, times the weights of some queries, to as many registers of their sums.
template <typename S, Size rows, Size registers>
void add_values(const S* weights, Size apart, Size keys, const S* values, Size width, S* sums) {
  using V = Simd<S>;
  typename V::Register sum[rows][registers];
#pragma GCC unroll 12
  for (Size r = 0; r < rows; ++r) {
    for (Size at = 0; at < registers; ++at) sum[r][at] = V::load(sums + r * width + at * V::lanes);
  }
  for (Size j = 0; j < keys; ++j, values += width) {
    typename V::Register value[registers];
    for (Size at = 0; at < registers; ++at) value[at] = V::load(values + at * V::lanes);
#pragma GCC unroll 12
    for (Size r = 0; r < rows; ++r) {
      const auto weight = V::broadcast(weights[r * apart + j]);
      for (Size at = 0; at < registers; ++at) sum[r][at] = V::multiply_add(weight, value[at], sum[r][at]);
    }
  }
#pragma GCC unroll 12
  for (Size r = 0; r < rows; ++r) {
    for (Size at = 0; at < registers; ++at) V::store(sums + r * width + at * V::lanes, sum[r][at]);
  }
}

}  // namespace
