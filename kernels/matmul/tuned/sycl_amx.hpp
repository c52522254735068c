// matmul in bfloat16, float16 and int8 by joint_matrix: the source of sycl for CPUs with AMX. A joint_matrix belongs to
// all work items of a sub-group together. There it is a tile of AMX.
//
// Idea: as in amx.hpp, which says more of it. 2 x 2 tiles of c stay in registers, while two tiles of a and two of b at a
//   time are multiplied into them. One launch packs a and b, the next multiplies.
// Memory: a panel is 32 rows of a, or 32 columns of b, over the whole depth. A group of one sub-group takes a block of
//   4 x 4 panels. Tiles of c go through local memory, from where work items copy what exists to c.
// Edges: panels are filled up with zeros on both sides.
// Numbers: as in amx.hpp. Elements of c that are not finite are computed anew, in float64.
#pragma once

#include <sycl/sycl.hpp>

#include <cstdint>
#include <type_traits>

#include "amx_packing.hpp"

namespace syclexp = sycl::ext::oneapi::experimental;
namespace matrix = sycl::ext::oneapi::experimental::matrix;
using sycl::ext::oneapi::this_work_item::get_nd_item;

/// What joint_matrix calls the elements. Parts of float16 are bfloat16.
template <typename T>
using Element = std::conditional_t<sizeof(T) == 1, std::int8_t, sycl::ext::oneapi::bfloat16>;
template <typename T>
constexpr Size elements_of_row = bytes_of_row / Size(sizeof(Element<T>));

template <typename T>
using TileOfA = matrix::joint_matrix<sycl::sub_group, Element<T>, matrix::use::a, rows_of_tile, elements_of_row<T>,
                                     matrix::layout::row_major>;
template <typename T>
using TileOfB = matrix::joint_matrix<sycl::sub_group, Element<T>, matrix::use::b, elements_of_row<T>, words_of_row,
                                     matrix::layout::ext_intel_packed>;
template <typename T>
using TileOfC = matrix::joint_matrix<sycl::sub_group, Sum<T>, matrix::use::accumulator, rows_of_tile, words_of_row>;

/// Rows or columns of c that one group computes, and the work items of that group.
constexpr Size block = 4 * side, items = 16;
/// Rows of b, or columns of a, that one work item packs: whole steps of every format.
constexpr Size packed_depth = 256;

/// Where panels lie in scratch memory: first those of a, then those of b.
template <typename T>
struct Panels {
  Word* const a;
  Word* const b;
  const Size steps, words;  // of one panel

  Panels(Word* scratch, Size m, Size k)
      : a(scratch),
        b(scratch + parts(m, side) * parts(k, depth_of_step<T>) * words_of_step<T>),
        steps(parts(k, depth_of_step<T>)),
        words(steps * words_of_step<T>) {}
  Word* of_a(Size i) const { return a + i / side * words; }
  Word* of_b(Size j) const { return b + j / side * words; }
};

/// Packs a part of a panel of a, or of b, whose panels follow those of a.
template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<2>))
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::work_group_size<1, 1>))
void pack_tiles(const T* a, const T* b, Sum<T>* c, Word* scratch, std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto item = get_nd_item<2>();
  const Panels<T> panels(scratch, m, k);
  const Size p = item.get_global_id(0) * packed_depth, depth = least(packed_depth, k - p);
  const Size first = p / depth_of_step<T> * words_of_step<T>;
  const Size i = item.get_global_id(1) * side, j = i - parts(m, side) * side;
  if (i < m) pack_a(a + i * k + p, k, least(side, m - i), depth, panels.of_a(i) + first);
  if (j >= 0 && j < n) pack_b(b + p * n + j, n, least(side, n - j), depth, panels.of_b(j) + first);
}

template <typename T>
auto elements(const Word* words) {
  return sycl::address_space_cast<sycl::access::address_space::global_space, sycl::access::decorated::no>(
      reinterpret_cast<const Element<T>*>(words));
}

/// Loads two tiles, which lie one after the other.
template <typename T, typename Tile>
void load(sycl::sub_group group, Tile (&tiles)[2], const Word* from) {
#pragma unroll
  for (int at = 0; at < 2; ++at) {
    matrix::joint_matrix_load(group, tiles[at], elements<T>(from + at * words_of_tile), elements_of_row<T>);
  }
}

template <typename T>
void multiply_tiles(sycl::sub_group group, TileOfA<T> (&a)[2], TileOfB<T> (&b)[2], TileOfC<T> (&c)[2][2]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < 2; ++j) matrix::joint_matrix_mad(group, c[i][j], a[i], b[j], c[i][j]);
  }
}

/// Multiplies a panel of a by one of b, into a buffer.
template <typename T>
void multiply_panels(sycl::sub_group group, const Word* a, const Word* b, Size steps, Sum<T>* buffer) {
  constexpr Size low = 2 * words_of_tile;  // where the tiles of the second parts begin
  TileOfA<T> of_a[2];
  TileOfB<T> of_b[2];
  TileOfC<T> of_c[2][2];
#pragma unroll
  for (int at = 0; at < 4; ++at) matrix::joint_matrix_fill(group, of_c[at / 2][at % 2], Sum<T>(0));
  for (Size step = 0; step < steps; ++step, a += words_of_step<T>, b += words_of_step<T>) {
    load<T>(group, of_a, a);
    load<T>(group, of_b, b);
    multiply_tiles<T>(group, of_a, of_b, of_c);
    if constexpr (Tiles<T>::parts == 2) {
      load<T>(group, of_b, b + low);
      multiply_tiles<T>(group, of_a, of_b, of_c);
      load<T>(group, of_a, a + low);
      multiply_tiles<T>(group, of_a, of_b, of_c);
      load<T>(group, of_b, b);
      multiply_tiles<T>(group, of_a, of_b, of_c);
    }
  }
#pragma unroll
  for (int at = 0; at < 4; ++at) {
    Sum<T>* const to = buffer + at / 2 * rows_of_tile * side + at % 2 * words_of_row;
    matrix::joint_matrix_store(
        group, of_c[at / 2][at % 2],
        sycl::address_space_cast<sycl::access::address_space::local_space, sycl::access::decorated::no>(to), side,
        matrix::layout::row_major);
  }
}

/// An element of c in float64, where no sum of such products overflows.
template <typename T>
float multiply_in_float64(const T* a, const T* b, Size i, Size j, Size n, Size k) {
  double sum = 0;
  for (Size p = 0; p < k; ++p) sum += double(widen(a[i * k + p])) * double(widen(b[p * n + j]));
  return static_cast<float>(sum);
}

/// Computes one block of c.
template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<2>))
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::work_group_size<1, items>))
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::sub_group_size<items>))
void multiply_blocks(const T* a, const T* b, Sum<T>* c, Word* scratch, std::int64_t m, std::int64_t n, std::int64_t k) {
  static syclexp::work_group_static<Sum<T>[side * side]> tiles_of_c;
  const auto item = get_nd_item<2>();
  const auto group = item.get_sub_group();
  const Panels<T> panels(scratch, m, k);
  Sum<T>(&buffer)[side * side] = tiles_of_c;
  const Size i0 = item.get_group(0) * block, j0 = item.get_group(1) * block;
  for (Size i1 = i0; i1 < least(m, i0 + block); i1 += side) {
    for (Size j1 = j0; j1 < least(n, j0 + block); j1 += side) {
      multiply_panels<T>(group, panels.of_a(i1), panels.of_b(j1), panels.steps, buffer);
      sycl::group_barrier(group);
      for (Size i = i1; i < least(m, i1 + side); ++i) {
        for (Size j = j1 + item.get_local_id(1); j < least(n, j1 + side); j += items) {
          Sum<T> sum = buffer[(i - i1) * side + j - j1];
          if constexpr (sizeof(T) == 2) {
            if (!sycl::isfinite(sum)) sum = multiply_in_float64(a, b, i, j, n, k);
          }
          c[i * n + j] = sum;
        }
      }
      sycl::group_barrier(group);
    }
  }
}
