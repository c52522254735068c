// matmul in bfloat16, float16 and int8 by Intel's AMX: the source of avx for CPUs that have it. A core has eight tiles,
// each of up to 16 rows of 64 bytes. One instruction multiplies two of them and adds the product to a third.
//
// Idea: 2 x 2 tiles of c stay in registers. Two tiles of a and two of b at a time are multiplied into them. A row of a
//   tile of a is 64 bytes of a row of a. A row of a tile of b has 16 columns and several rows of b. Elements that fill
//   32 bits together stand beside each other. Both are packed so.
// Memory: a panel is 32 rows of a, or 32 columns of b, over the depth of a pass. A panel of a stays in the first-level
//   cache while the panels of b pass by. Those stay in the second-level cache while the panels of a do. Tiles of c are
//   stored to a buffer. Vector instructions add that to c while the next tiles are multiplied.
// Edges: panels are filled up with zeros on both sides, since zero times infinity would be no zero.
// Numbers: products of bfloat16 are exact, and subnormal numbers count as zeros. A float16 is exactly the sum of two
//   bfloat16, so four products make one of float16. Tiles know no infinity that is such a sum, nor its product with a
//   subnormal number. Where c is not finite, rows and columns with such elements are computed anew, in float64.
//
// Everything is in an unnamed namespace, for the reason that workspace.hpp gives.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "../../workspace.hpp"
#include "amx_packing.hpp"
#include "tile_configuration.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace {

/// What a panel of a fills at most of the first-level cache, which has 48 KiB where there are tiles.
constexpr Size most_bytes_of_panel = Size(32) << 10;
/// Up to so many multiplications in all, threads cost more than they save.
constexpr double few_to_share = 256.0 * 256 * 256;

struct Range {
  Size begin, end;
  Size size() const { return end - begin; }
};

template <typename T>
struct Product {
  const T *a, *b;
  Sum<T>* c;
  Size m, n, k;
};

/// Multiplies tiles 4 and 5 by 6 and 7, into 0 to 3. Tiles are named by digits: intrinsics paste them into their
/// instructions.
template <typename T>
void multiply_tiles() {
  if constexpr (sizeof(T) == 1) {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  } else {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
}

inline void load_a(const Word* tiles) {
  _tile_loadd(4, tiles, bytes_of_row);
  _tile_loadd(5, tiles + words_of_tile, bytes_of_row);
}

/// Prefetches past the first-level cache, where a panel of a is to stay.
inline void load_b(const Word* tiles) {
  _tile_stream_loadd(6, tiles, bytes_of_row);
  _tile_stream_loadd(7, tiles + words_of_tile, bytes_of_row);
}

/// A computed block of c that waits in a buffer. Its rows go to c one after the other.
template <typename S>
struct Waiting {
  const S* from;
  S* to;
  Size stride, rows, columns;
  bool add;

  /// Adds the next `count` rows to c. `largest` becomes the largest magnitude that has gone to c, as the bits of a
  /// float.
  void go(Size count, Word& largest) {
    for (Size last = least(count, rows); last > 0; --last, --rows, from += side, to += stride) {
      if (columns == side) {
        go_row(side, largest);
      } else {
        go_row(columns, largest);
      }
    }
  }

  void go_row(Size count, Word& largest) const {
    Word most = largest;
#pragma omp simd reduction(max : most)
    for (Size j = 0; j < count; ++j) {
      const S sum = add ? to[j] + from[j] : from[j];
      Word bits;
      __builtin_memcpy(&bits, &sum, sizeof bits);
      bits &= 0x7fffffffu;
      most = bits > most ? bits : most;
      to[j] = sum;
    }
    largest = most;
  }
};

/// Multiplies a panel of a by one of b, into the buffer. By then all rows of the block that waited there have gone to
/// c.
template <typename T>
void multiply_panels(const Word* a, const Word* b, Size steps, Sum<T>* buffer, Waiting<Sum<T>>& waiting,
                     Word& largest) {
  constexpr Size low = 2 * words_of_tile;  // where the tiles of the second parts begin
  const Size rows_a_step = parts(side, steps);
  __asm__ volatile("" : : : "memory");  // writes the panels: the intrinsics do not say that they read them
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (Size step = 0; step < steps; ++step, a += words_of_step<T>, b += words_of_step<T>) {
    load_a(a);
    load_b(b);
    multiply_tiles<T>();
    if constexpr (Tiles<T>::parts == 2) {
      load_b(b + low);
      multiply_tiles<T>();
      load_a(a + low);
      multiply_tiles<T>();
      load_b(b);
      multiply_tiles<T>();
    }
    waiting.go(rows_a_step, largest);
  }
  constexpr Size bytes = side * Size(sizeof(Sum<T>));
  _tile_stored(0, buffer, bytes);
  _tile_stored(1, buffer + rows_of_tile, bytes);
  _tile_stored(2, buffer + rows_of_tile * side, bytes);
  _tile_stored(3, buffer + rows_of_tile * side + rows_of_tile, bytes);
}

/// How deep a pass is, and how many columns of b it packs. All passes but the last have the same depth.
template <typename T>
struct Pass {
  Size steps, columns;

  Pass(Size k, Size n) {
    constexpr Size bytes_of_step = words_of_step<T> * Size(sizeof(Word)), most = most_bytes_of_panel / bytes_of_step;
    const Size all = parts(k, depth_of_step<T>);
    steps = parts(all, parts(all, most));
    const Size panels = second_level_cache() / 2 / (steps * bytes_of_step);
    columns = least(parts(n, side), panels > 0 ? panels : 1) * side;
  }
  Size depth() const { return steps * depth_of_step<T>; }
  Size words_of_panel() const { return steps * words_of_step<T>; }
};

/// Multiplies the rows of a by a block of columns of b, over the depth of a pass.
template <typename T>
void multiply_pass(const Product<T>& x, Range rows, Range columns, Range depth, Word* panel_of_a, Word* panels_of_b,
                   Word& largest) {
  alignas(bytes_of_row) Sum<T> buffer[side * side];
  Waiting<Sum<T>> waiting = {};
  const Size steps = parts(depth.size(), depth_of_step<T>), words_of_panel = steps * words_of_step<T>;
  const auto panel_of_b = [=](Size j) { return panels_of_b + (j - columns.begin) / side * words_of_panel; };
  for (Size j = columns.begin; j < columns.end; j += side) {
    pack_b(x.b + depth.begin * x.n + j, x.n, least(side, columns.end - j), depth.size(), panel_of_b(j));
  }
  for (Size i = rows.begin; i < rows.end; i += side) {
    const Size height = least(side, rows.end - i);
    pack_a(x.a + i * x.k + depth.begin, x.k, height, depth.size(), panel_of_a);
    for (Size j = columns.begin; j < columns.end; j += side) {
      multiply_panels<T>(panel_of_a, panel_of_b(j), steps, buffer, waiting, largest);
      waiting = {buffer, x.c + i * x.n + j, x.n, height, least(side, columns.end - j), depth.begin > 0};
    }
  }
  waiting.go(side, largest);
}

thread_local Workspace workspace_of_panels;

/// Computes one thread's part of c; false where there is no memory for panels. `largest` is that of `Waiting`.
template <typename T>
bool multiply(const Product<T>& x, Range rows, Range columns, Word& largest) {
  const Pass<T> pass(x.k, columns.size());
  const Size panels = 1 + pass.columns / side;
  Word* const panel_of_a = workspace_of_panels.hold<Word>(panels * pass.words_of_panel());
  if (panel_of_a == nullptr) return false;
  configure_tiles();
  for (Size j = columns.begin; j < columns.end; j += pass.columns) {
    for (Size p = 0; p < x.k; p += pass.depth()) {
      multiply_pass(x, rows, {j, least(j + pass.columns, columns.end)}, {p, least(p + pass.depth(), x.k)}, panel_of_a,
                    panel_of_a + pass.words_of_panel(), largest);
    }
  }
  _tile_release();
  return true;
}

template <typename T>
bool all_finite(const T* x, Size count) {
  bool finite = true;
#pragma omp simd reduction(&& : finite)
  for (Size j = 0; j < count; ++j) finite = finite && (bits_of_float(widen(x[j])) & 0x7f800000u) != 0x7f800000u;
  return finite;
}

/// Computes up to 32 elements of a row of c in float64, where no sum of such products overflows.
template <typename T>
void multiply_in_float64(const Product<T>& x, Size i, Size j, Size count) {
  double sum[side] = {};
  for (Size p = 0; p < x.k; ++p) {
    const double factor = widen(x.a[i * x.k + p]);
    for (Size at = 0; at < count; ++at) sum[at] += factor * widen(x.b[p * x.n + j + at]);
  }
  for (Size at = 0; at < count; ++at) x.c[i * x.n + j + at] = static_cast<float>(sum[at]);
}

/// Computes anew rows of c that meet infinity or NaN in a, and blocks of columns that do in b. False where there is no
/// memory.
template <typename T>
bool multiply_infinite(const Product<T>& x) {
  const Size blocks = parts(x.n, side);
  bool* const finite = workspace_of_panels.hold<bool>(blocks);  // of a block of b
  if (finite == nullptr) return false;
  for (Size block = 0; block < blocks; ++block) {
    finite[block] = true;
    const Size j = block * side, count = least(side, x.n - j);
    for (Size p = 0; p < x.k; ++p) finite[block] = finite[block] && all_finite(x.b + p * x.n + j, count);
  }
#pragma omp parallel for schedule(dynamic)
  for (Size i = 0; i < x.m; ++i) {
    const bool finite_row = all_finite(x.a + i * x.k, x.k);
    for (Size block = 0; block < blocks; ++block) {
      const Size j = block * side;
      if (!finite_row || !finite[block]) multiply_in_float64(x, i, j, least(side, x.n - j));
    }
  }
  return true;
}

/// How many parts the columns of c are divided into for threads. The rows are divided into threads / that. Every part
/// packs its own rows of a and columns of b, and this division packs the least.
inline Size parts_of_columns(Size threads, Size m, Size n) {
  Size best = 1;
  for (Size across = 1; across <= threads; ++across) {
    const auto packed = [=](Size count) { return m * count + n * (threads / count); };
    if (threads % across == 0 && packed(across) < packed(best)) best = across;
  }
  return best;
}

/// A thread's part of so many rows or columns, as whole panels.
inline Range part_of(Size whole, Size part, Size of) {
  const Size panels = parts(whole, side);
  return {panels * part / of * side, least(panels * (part + 1) / of * side, whole)};
}

}  // namespace

template <typename T>
static bool matmul(const T* a, const T* b, Sum<T>* c, std::int64_t m, std::int64_t n, std::int64_t k) {
  for (Size i = 0; k == 0 && i < m * n; ++i) c[i] = 0;
  if (m == 0 || n == 0 || k == 0) return true;
  const Product<T> product = {a, b, c, m, n, k};
#if defined(_OPENMP)
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const Size threads = work > few_to_share ? omp_get_max_threads() : 1;
#else
  const Size threads = 1;
#endif
  const Size across = parts_of_columns(threads, m, n), down = threads / across;
  bool enough_memory = true;
  Word largest = 0;
#pragma omp parallel for schedule(static) reduction(&& : enough_memory) reduction(max : largest) if (threads > 1)
  for (Size part = 0; part < threads; ++part) {
    const Range rows = part_of(m, part / across, down), columns = part_of(n, part % across, across);
    if (rows.size() > 0 && columns.size() > 0)
      enough_memory = multiply(product, rows, columns, largest) && enough_memory;
  }
  constexpr Word infinity = 0x7f800000u;
  if constexpr (sizeof(T) == 2) {
    if (enough_memory && largest >= infinity) return multiply_infinite(product);
  }
  return enough_memory;
}
