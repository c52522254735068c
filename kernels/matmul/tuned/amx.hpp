// matmul in bfloat16, float16 and int8 by Intel's AMX: the source of avx for CPUs that have it. A core has eight tiles,
// each of up to 16 rows of 64 bytes. One instruction multiplies two of them and adds the product to a third.
//
// Idea: 2 x 2 tiles of c stay in registers. Two tiles of a and two of b at a time are multiplied into them. A row of a
//   tile of a is 64 bytes of a row of a. A row of a tile of b has 16 columns and several rows of b. Elements that fill
//   32 bits together stand beside each other. Both are packed so.
// Memory: a panel is 32 rows of a, or 32 columns of b, over the depth of a pass. A panel of a stays in the first-level
//   cache while the panels of b pass by. Those stay in the second-level cache while the panels of a do. Panels of a are
//   kept for the next columns of b, if there are any. Tiles of c are stored to a buffer. Vector instructions add that
//   to c while the next tiles are multiplied.
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

/// What a panel of a fills at most of the first-level cache, which has 48 KiB where there are tiles. It is a little more
/// than a power of two, so that k = 513 needs no more passes than k = 512.
constexpr Size most_bytes_of_panel = Size(36) << 10;
/// What panels of a that are kept fill at most. The more rows they have, the less often b is packed.
constexpr Size most_bytes_of_a = Size(4) << 20;
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

/// Columns from `begin` to `end`. Their panels begin at `origin`, which may be before them, and every 32 columns from
/// there.
struct Columns {
  Size begin, end, origin;
  Size panel(Size j) const { return (j - origin) / side; }
  /// From column j to the end of its panel.
  Size width(Size j) const { return least(side - (j - origin) % side, end - j); }
};

// A function cannot have tiles as parameters: intrinsics paste their numbers into instructions.
#define ADD_PRODUCT(c, a, b)        \
  do {                              \
    if constexpr (sizeof(T) == 1) { \
      _tile_dpbssd(c, a, b);        \
    } else {                        \
      _tile_dpbf16ps(c, a, b);      \
    }                               \
  } while (false)

enum class Load { a, b, both };

/// Adds the product of one or two tiles of a and of b to tiles 0 to 3. Each tile is loaded just before the first product
/// that needs it, so that products wait for one load and not for four. b is loaded past the first-level cache, where a
/// panel of a is to stay. Tiles that are not loaded are those of the call before.
template <typename T, int tiles_of_a, int tiles_of_b, Load load = Load::both>
void multiply_tiles(const Word* a, const Word* b) {
  if constexpr (load != Load::a) _tile_stream_loadd(6, b, bytes_of_row);
  if constexpr (load != Load::b) _tile_loadd(4, a, bytes_of_row);
  ADD_PRODUCT(0, 4, 6);
  if constexpr (tiles_of_a == 2) {
    if constexpr (load != Load::b) _tile_loadd(5, a + words_of_tile, bytes_of_row);
    ADD_PRODUCT(2, 5, 6);
  }
  if constexpr (tiles_of_b == 2) {
    if constexpr (load != Load::a) _tile_stream_loadd(7, b + words_of_tile, bytes_of_row);
    ADD_PRODUCT(1, 4, 7);
    if constexpr (tiles_of_a == 2) ADD_PRODUCT(3, 5, 7);
  }
}
#undef ADD_PRODUCT

/// For each column of a block: the largest magnitude that has gone to c, as the bits of a float. One number for all
/// would have to be found in a vector after each row.
struct alignas(bytes_of_row) Largest {
  Word of[side] = {};

  Word of_all() const {
    Word most = 0;
    for (const Word each : of) most = each > most ? each : most;
    return most;
  }
};

/// A computed block of c that waits in a buffer. Its rows go to c one after the other.
template <typename S>
struct Waiting {
  const S* from;
  S* to;
  Size stride, rows, columns;
  bool add;
  Size gone = 0;

  /// Adds the next `count` rows to c.
  void go(Size count, Largest& largest) {
    for (const Size end = least(gone + count, rows); gone < end; ++gone) {
      const S* const sums = from + gone * side;
      S* const row = to + gone * stride;
      if (columns == side) {
        add ? go_row<true>(sums, row, side, largest) : go_row<false>(sums, row, side, largest);
      } else {
        add ? go_row<true>(sums, row, columns, largest) : go_row<false>(sums, row, columns, largest);
      }
    }
  }

  template <bool adding>
  static void go_row(const S* sums, S* row, Size count, Largest& largest) {
#pragma omp simd
    for (Size j = 0; j < count; ++j) {
      const S sum = adding ? row[j] + sums[j] : sums[j];
      Word bits;
      __builtin_memcpy(&bits, &sum, sizeof bits);
      bits &= 0x7fffffffu;
      largest.of[j] = bits > largest.of[j] ? bits : largest.of[j];
      row[j] = sum;
    }
  }
};

/// Multiplies a panel of a by one of b, into the buffer. By then all rows of the block that waited there have gone to
/// c.
template <typename T, int tiles_of_a, int tiles_of_b>
void multiply_panels(const Word* a, const Word* b, Size steps, Sum<T>* buffer, Waiting<Sum<T>>& waiting,
                     Largest& largest) {
  constexpr Size low = 2 * words_of_tile;  // where the tiles of the second parts begin
  const Size rows_a_step = parts(side, steps);
  __asm__ volatile("" : : : "memory");  // writes the panels: the intrinsics do not say that they read them
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (Size step = 0; step < steps; ++step, a += words_of_step<T>, b += words_of_step<T>) {
    multiply_tiles<T, tiles_of_a, tiles_of_b>(a, b);
    if constexpr (Tiles<T>::parts == 2) {
      multiply_tiles<T, tiles_of_a, tiles_of_b, Load::b>(a, b + low);
      multiply_tiles<T, tiles_of_a, tiles_of_b, Load::a>(a + low, b + low);
      multiply_tiles<T, tiles_of_a, tiles_of_b, Load::b>(a + low, b);
    }
    waiting.go(rows_a_step, largest);
  }
  constexpr Size bytes = side * Size(sizeof(Sum<T>));
  _tile_stored(0, buffer, bytes);
  _tile_stored(1, buffer + rows_of_tile, bytes);
  _tile_stored(2, buffer + rows_of_tile * side, bytes);
  _tile_stored(3, buffer + rows_of_tile * side + rows_of_tile, bytes);
}

/// The same at the edges of c, where one tile of a or of b has all rows or columns that are left.
template <typename T>
void multiply_edges(const Word* a, const Word* b, Size steps, Sum<T>* buffer, Waiting<Sum<T>>& waiting,
                    Largest& largest, bool two_of_a, bool two_of_b) {
  const auto multiply = two_of_a   ? multiply_panels<T, 2, 1>
                        : two_of_b ? multiply_panels<T, 1, 2>
                                   : multiply_panels<T, 1, 1>;
  multiply(a, b, steps, buffer, waiting, largest);
}

/// Even parts of a whole, as few as there can be if none may be larger than `most`.
inline Size even_part(Size whole, Size most) { return parts(whole, parts(whole, most > 0 ? most : 1)); }

/// How much is packed at a time: rows of a, columns of b, and steps of both, which are a pass. The last may have less.
/// So many rows stay packed for further columns. Where there are none, each panel takes the place of the one before,
/// which is still in the first-level cache.
template <typename T>
struct Packed {
  Size steps, columns, rows, kept;

  Packed(Size m, Size n, Size k) {
    constexpr Size bytes_of_step = words_of_step<T> * Size(sizeof(Word));
    steps = even_part(parts(k, depth_of_step<T>), most_bytes_of_panel / bytes_of_step);
    const Size bytes_of_panel = steps * bytes_of_step;
    columns = even_part(parts(n, side), second_level_cache() * 3 / 8 / bytes_of_panel) * side;
    rows = columns < n ? even_part(parts(m, side), most_bytes_of_a / bytes_of_panel) * side : parts(m, side) * side;
    kept = columns < n ? rows : side;
  }
  Size depth() const { return steps * depth_of_step<T>; }
  Size words_of_panel() const { return steps * words_of_step<T>; }
};

/// Multiplies a block of rows of a by one of columns of b, over the depth of a pass. The first columns pack a, for all.
template <typename T>
void multiply_block(const Product<T>& x, Range rows, const Columns& columns, Range depth, bool packs_a, Size kept,
                    Word* panels_of_a, Word* panels_of_b, Largest& largest) {
  alignas(bytes_of_row) Sum<T> buffer[side * side];
  Waiting<Sum<T>> waiting = {};
  const Size steps = parts(depth.size(), depth_of_step<T>), words_of_panel = steps * words_of_step<T>;
  // Along the rows of b: prefetchers follow them, and few pages are open at a time.
  for (Size step = 0; step < steps; ++step) {
    const Size p = depth.begin + step * depth_of_step<T>;
    for (Size j = columns.begin; j < columns.end; j += columns.width(j)) {
      pack_b(x.b + p * x.n + j, x.n, columns.width(j), least(depth_of_step<T>, depth.end - p),
             panels_of_b + columns.panel(j) * words_of_panel + step * words_of_step<T>);
    }
  }
  for (Size i = rows.begin; i < rows.end; i += side) {
    const Size height = least(side, rows.end - i);
    Word* const panel_of_a = panels_of_a + (i - rows.begin) % kept / side * words_of_panel;
    if (packs_a) pack_a(x.a + i * x.k + depth.begin, x.k, height, depth.size(), panel_of_a);
    for (Size j = columns.begin, width; j < columns.end; j += width) {
      width = columns.width(j);
      const Word* const panel_of_b = panels_of_b + columns.panel(j) * words_of_panel;
      const bool two_of_a = height > rows_of_tile, two_of_b = width > rows_of_tile;
      if (two_of_a && two_of_b) {
        multiply_panels<T, 2, 2>(panel_of_a, panel_of_b, steps, buffer, waiting, largest);
      } else {
        multiply_edges<T>(panel_of_a, panel_of_b, steps, buffer, waiting, largest, two_of_a, two_of_b);
      }
      waiting = {buffer, x.c + i * x.n + j, x.n, height, width, depth.begin > 0};
    }
  }
  waiting.go(side, largest);
}

/// How many columns before column j have begun its line of memory in c, if all rows are alike; else 0. Arrays of NumPy
/// seldom begin at a line. Panels that do not either would write two lines for each vector, and took 10% longer.
template <typename T>
Size columns_before(const Product<T>& x, Size j) {
  const auto address = reinterpret_cast<std::uintptr_t>(x.c + j);
  return x.n % words_of_row == 0 ? static_cast<Size>(address / sizeof(Sum<T>) % words_of_row) : 0;
}

thread_local Workspace workspace_of_panels;

/// Computes a part of c; false where there is no memory for panels. `largest` is the largest magnitude of all parts that
/// this thread has computed, as the bits of a float.
template <typename T>
bool multiply(const Product<T>& x, Range rows, Range columns, Word& largest) {
  const Size first = columns.begin - columns_before(x, columns.begin);
  const Packed<T> packed(rows.size(), columns.end - first, x.k);
  const Size words_of_a = packed.kept / side * packed.words_of_panel();
  const Size words_of_b = packed.columns / side * packed.words_of_panel();
  Word* const panels_of_a = workspace_of_panels.hold<Word>(words_of_a + words_of_b);
  if (panels_of_a == nullptr) return false;
  Largest of_columns;
  configure_tiles();
  for (Size i = rows.begin; i < rows.end; i += packed.rows) {
    for (Size p = 0; p < x.k; p += packed.depth()) {
      for (Size j = first; j < columns.end; j += packed.columns) {
        const Columns block = {j == first ? columns.begin : j, least(j + packed.columns, columns.end), j};
        multiply_block(x, {i, least(i + packed.rows, rows.end)}, block, {p, least(p + packed.depth(), x.k)}, j == first,
                       packed.kept, panels_of_a, panels_of_a + words_of_a, of_columns);
      }
    }
  }
  _tile_release();
  const Word most = of_columns.of_all();
  if (most > largest) largest = most;
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
