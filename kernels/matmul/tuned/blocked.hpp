// Register tiles for matmul in C++ without intrinsics, which cpp and openmp share. Only openmp uses the directives for
// threads. The files that include this say in which order the tiles of c are computed, and by whom.
//
// A tile is a local array whose loops have constant ends. So the compiler unrolls the loop over rows, and makes vector
// instructions of the one over columns. Every index into the array is then a constant, and the sums stay in registers
// while p runs. No intrinsics are needed, only the number and the width of the registers.
//
// Everything is in an unnamed namespace. One program holds this header compiled for several instruction sets, and the
// linker must never replace one version by another.
#pragma once

#include <type_traits>

#include "../../formats.hpp"
#include "../../workspace.hpp"

namespace {

/// A format as it is packed. Those of 16 bits become floats, so that all other code is shared.
template <typename T>
using Widened = std::conditional_t<std::is_integral_v<T>, T, Sum<T>>;

/// What elements of T are widened to when they are packed, and summed in. For int8 it is float, which CPUs multiply
/// faster. Sums of up to 2^10 products of at most 2^14 are exact.
template <typename T>
using Packed = std::conditional_t<std::is_integral_v<T>, float, Sum<T>>;
template <typename T>
constexpr Size most_exact_products = std::is_integral_v<T> ? 1024 : 1 << 30;
/// Whether tiles can read elements in place. If not, they would widen them again and again.
template <typename T>
constexpr bool as_packed = std::is_same_v<T, Packed<T>>;

#if defined(__AVX512F__)
constexpr Size bytes_of_register = 64, height_of_tile = 14;  // 28 sums of 32 registers
#elif defined(__AVX__)
constexpr Size bytes_of_register = 32, height_of_tile = 6;  // 12 sums of 16
#else
constexpr Size bytes_of_register = 16, height_of_tile = 6;  // the same; 16 bytes are what SSE2, Neon and VSX have
#endif

/// The tile of c that stays in registers. It has as many sums as there are registers, less those for a and b.
template <typename T>
struct Tile {
  static constexpr Size height = height_of_tile, registers = 2, lanes = bytes_of_register / Size(sizeof(Packed<T>));
  static constexpr Size width = registers * lanes;
};

/// The longest row of a band, in cache lines. A band is the rows of a that make a tile of c, over the depth of one
/// pass. Its copy has to stay in the first-level cache, of 32 KiB or more, while b passes by. The number is odd, since
/// rows a power of two apart share few sets of a cache.
constexpr Size bytes_of_line = 64, lines_of_band = 28 * 1024 / height_of_tile / bytes_of_line | 1;

template <typename T>
struct Band {
  static constexpr Size stride = lines_of_band * bytes_of_line / Size(sizeof(Packed<T>));
  static constexpr Size depth = stride < most_exact_products<T> ? stride : most_exact_products<T>;

  alignas(bytes_of_line) Packed<T> rows[height_of_tile * stride];
};

/// Where a tile reads: element (i, p) of a is a[i * a_stride + p], element (p, j) of b is b[p * b_stride + j].
template <typename T>
struct Operands {
  const Packed<T>* a;
  Size a_stride;
  const Packed<T>* b;
  Size b_stride;
};

/// Where a tile is written: its upper left corner, how many of its columns exist, and whether it adds to what is there.
template <typename T>
struct Result {
  Sum<T>* c;
  Size stride, columns;
  bool add;
};

template <typename From, typename To>
void put(From x, bool add, To& to) {
  to = add ? to + static_cast<To>(x) : static_cast<To>(x);
}

/// c = a b, or c += a b, for `height` rows and the columns of `registers` registers, all of which b has.
template <typename T, bool packed, int height, int registers>
void multiply_tile(Operands<T> in, Size depth, Result<T> out) {
  constexpr int width = registers * Tile<T>::lanes;
  if (packed) in.a_stride = Band<T>::stride, in.b_stride = Tile<T>::width;  // constants, for the compiler
  Packed<T> sum[height][width];
#pragma GCC unroll 16
  for (int i = 0; i < height; ++i) {
#pragma omp simd
    for (int j = 0; j < width; ++j) sum[i][j] = 0;
  }
  for (Size p = 0; p < depth; ++p) {
    const Packed<T>* const row = in.b + p * in.b_stride;
#pragma GCC unroll 16
    for (int i = 0; i < height; ++i) {
      const Packed<T> factor = in.a[i * in.a_stride + p];
#pragma omp simd
      for (int j = 0; j < width; ++j) sum[i][j] += factor * row[j];
    }
  }
  if (out.columns < width) {
    for (int i = 0; i < height; ++i, out.c += out.stride) {
      for (Size j = 0; j < out.columns; ++j) put(sum[i][j], out.add, out.c[j]);
    }
    return;
  }
#pragma GCC unroll 16
  for (int i = 0; i < height; ++i) {
    Sum<T>* const row = out.c + i * out.stride;
#pragma omp simd
    for (int j = 0; j < width; ++j) put(sum[i][j], out.add, row[j]);
  }
}

/// The tile for a number of rows that is known only at run time. It is one register wide where that is enough.
template <typename T, bool packed, int height = Tile<T>::height>
void multiply_rows(Size rows, Operands<T> in, Size depth, Result<T> out) {
  if (rows == height) {
    if (out.columns <= Tile<T>::lanes) return multiply_tile<T, packed, height, 1>(in, depth, out);
    return multiply_tile<T, packed, height, Tile<T>::registers>(in, depth, out);
  }
  if constexpr (height > 1) multiply_rows<T, packed, height - 1>(rows, in, depth, out);
}

template <typename T>
void pack(const T* from, Size count, Packed<T>* to) {
#pragma omp simd
  for (Size j = 0; j < count; ++j) to[j] = static_cast<Packed<T>>(widen(from[j]));
}

template <typename T>
void pack_band(const T* a, Size stride, Size rows, Size depth, Band<T>& to) {
  for (Size i = 0; i < rows; ++i) pack(a + i * stride, depth, to.rows + i * Band<T>::stride);
}

/// Packs a panel of b: as many columns as a tile has, by rows. Missing columns are zeros. So a ragged tile is computed
/// like any other, and only its part of c is written.
template <typename T>
void pack_panel(const T* b, Size stride, Size depth, Size columns, Packed<T>* to) {
  constexpr Size width = Tile<T>::width;
  for (Size p = 0; p < depth; ++p, b += stride, to += width) {
    if (columns == width) {
      pack(b, width, to);
    } else {
      pack(b, columns, to);
      for (Size j = columns; j < width; ++j) to[j] = 0;
    }
  }
}

/// Copies the k x n matrix b by columns.
template <typename T>
void transpose(const T* b, Size k, Size n, Widened<T>* to) {
  for (Size p = 0; p < k; ++p) {
    for (Size j = 0; j < n; ++j) to[j * k + p] = static_cast<Widened<T>>(widen(b[p * n + j]));
  }
}

/// Rows of b that a pass over few columns copies by columns. They stay in a quarter of the second-level cache.
template <typename T>
Size depth_of_columns(Size n) {
  return second_level_cache() / 4 / (n * Size(sizeof(Widened<T>)));
}

/// The inner product of two vectors. Each lane has a sum of its own until the end.
template <typename T>
Sum<T> product(const T* x, const Widened<T>* y, Size k) {
  Sum<T> sum = 0;
#pragma omp simd reduction(+ : sum)
  for (Size p = 0; p < k; ++p) sum += widen(x[p]) * widen(y[p]);
  return sum;
}

/// Multiplies the band by the panels of one block of b, `columns` wide, into the rows of c that begin at `c`.
template <typename T>
void multiply_band(const Band<T>& band, Size rows, const Packed<T>* panels, Size columns, Size depth, Sum<T>* c, Size n,
                   bool add) {
  constexpr Size width = Tile<T>::width;
  for (Size j = 0; j < columns; j += width) {
    const Operands<Widened<T>> in = {band.rows, Band<T>::stride, panels + j * depth, width};
    multiply_rows<Widened<T>, true>(rows, in, depth, {c + j, n, least(width, columns - j), add});
  }
}

/// How many columns of b fill half of the second-level cache as panels. Every band reads them again from there.
template <typename T>
Size columns_of_block(Size depth) {
  const Size panels = second_level_cache() / 2 / ((depth + 1) * Tile<T>::width * Size(sizeof(Packed<T>)));
  return (panels > 0 ? panels : 1) * Tile<T>::width;
}

thread_local Workspace workspace;

/// Multiplies matrices in place, where little is read twice, or everything stays in the caches in any order.
template <typename T>
bool multiply_in_place(const T* a, const T* b, T* c, Size m, Size n, Size k, [[maybe_unused]] bool share) {
  constexpr Size height = Tile<T>::height, width = Tile<T>::width;
  const Size ragged = n / width * width;  // where the panel begins that has to be filled up with zeros
  T* const panel = workspace.hold<T>(Band<T>::depth * width);
  if (panel == nullptr) return false;
  Size p0 = 0;
  do {
    const Size depth = least(Band<T>::depth, k - p0);
    const Size block = m > height ? columns_of_block<T>(depth) : width;
    if (ragged < n) pack_panel(b + p0 * n + ragged, n, depth, n - ragged, panel);
#pragma omp parallel for collapse(2) schedule(static) if (share)
    for (Size j0 = 0; j0 < n; j0 += block) {
      for (Size i = 0; i < m; i += height) {
        for (Size j = j0; j < least(j0 + block, n); j += width) {
          const bool whole = j < ragged;
          const Operands<T> in = {a + i * k + p0, k, whole ? b + p0 * n + j : panel, whole ? n : width};
          multiply_rows<T, false>(least(height, m - i), in, depth, {c + i * n + j, n, least(width, n - j), p0 > 0});
        }
      }
    }
    p0 += depth;
  } while (p0 < k);
  return true;
}

/// Few columns would leave a tile mostly empty. So lanes run along p instead, and every element of c is a sum of its
/// own.
template <typename T>
bool multiply_narrow(const T* a, const T* b, Sum<T>* c, Size m, Size n, Size k, [[maybe_unused]] bool share) {
  constexpr bool same = std::is_same_v<T, Widened<T>>;
  const bool in_order = n == 1 && same;  // one column is already in order
  const Size most_depth = in_order ? k : least(k, depth_of_columns<T>(n));
  Widened<T>* const memory = workspace.hold<Widened<T>>(in_order ? 0 : n * most_depth);
  if (memory == nullptr) return false;
  for (Size p0 = 0; p0 < k; p0 += most_depth) {
    const Size depth = least(most_depth, k - p0);
    const Widened<T>* columns = memory;
    if constexpr (same) columns = in_order ? b : memory;
    if (!in_order) transpose(b + p0 * n, depth, n, memory);
#pragma omp parallel for schedule(static) if (share)
    for (Size i = 0; i < m; ++i) {
      for (Size j = 0; j < n; ++j) {
        const Sum<T> sum = product<T>(a + i * k + p0, columns + j * depth, depth);
        c[i * n + j] = p0 > 0 ? c[i * n + j] + sum : sum;
      }
    }
  }
  return true;
}

/// How best to compute a product of these sizes.
struct Plan {
  bool narrow;  ///< so few columns that lanes run along p
  bool pack;    ///< every element of a and b is used so often that copying it pays
  bool share;   ///< so much work that threads pay

  template <typename T>
  static Plan of(Size m, Size n, Size k) {
    constexpr double few_to_pack = 96.0 * 96 * 96, few_to_share = 160.0 * 160 * 160;
    constexpr Size few_rows = 2 * Tile<T>::height, few_columns = Tile<T>::width, few_deep = 32;
    const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    const bool pack = !as_packed<T> || (work > few_to_pack && m > few_rows && n > few_columns && k > few_deep);
    return {n <= Tile<T>::width / 8 && k > few_deep, pack, work > few_to_share};
  }
};

}  // namespace
