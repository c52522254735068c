// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Idea: a tile of c stays in vector registers while a column of a and a row of b are multiplied into it. (Goto and van
//   de Geijn, Anatomy of high-performance matrix multiplication, ACM TOMS 34, 2008.)
// Model: intrinsics name the registers and what is fetched ahead; each thread computes a part of c by itself.
// Memory: a and b are packed into panels that the tile reads in order: a in blocks that stay in the second-level cache,
//   b into the last; the first tile to need a panel of b reads b in place and packs it on the way, which hides the cost
//   behind its arithmetic. Small and thin matrices are read where they are.
// Edges: rows and registers are shared out evenly among tiles, so that none is much smaller than another; only the
//   last register of a row of c may be ragged, and is loaded and stored in part.
// Formats: float32, float64
// Formats on amx: float16, bfloat16, int8
#if defined(__AMX_TILE__)
#include "amx.hpp"
#else

#include <cstdint>

#include "../../simd.hpp"
#include "../../workspace.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace {

/// The tile of c that stays in registers: as many sums as there are registers, less those for a and b. The broader the
/// tile, the fewer elements of a are loaded for each product.
#if defined(__AVX512F__)
constexpr int rows_of_tile = 8, registers_of_tile = 3;  // 24 sums of 32 registers
#elif defined(__FMA__)
constexpr int rows_of_tile = 4, registers_of_tile = 3;  // 12 sums of 16
#else
constexpr int rows_of_tile = 6, registers_of_tile = 2;  // 12 sums; a product needs a register until it is added
#endif

/// Products summed in registers before a tile of c is read and written again: the longer, the less of c moves, and the
/// fewer rows of a have room in the cache.
template <typename T>
constexpr Size most_depth = 8192 / sizeof(T);
/// Multiplications of one thread up to which packing costs more than it saves, and in all up to which threads do.
constexpr double few_to_pack = 128.0 * 128 * 128, few_to_share = 100.0 * 100 * 100;
template <typename T>
constexpr Size line = 64 / sizeof(T);  // of a cache
/// Of the last-level cache that a thread's panels of b may take at most; where it is shared with others, none has more.
constexpr Size most_bytes_of_b = Size(32) << 20;
/// How long before its use a line is fetched from the second-level cache into the first, in multiply-adds.
constexpr int ahead = 240;

/// A whole in as few parts as none exceeds `most`; they differ by one at most.
struct Split {
  Size count, size, larger;
  Split(Size whole, Size most) : count(parts(whole, most)), size(whole / count), larger(whole % count) {}
  Size begin(Size part) const { return part * size + least(part, larger); }
  Size of(Size part) const { return part < larger ? size + 1 : size; }
};

struct Range {
  Size begin, end;
  Size size() const { return end - begin; }
};

template <typename T>
struct Product {
  const T *a, *b;
  T* c;
  Size m, n, k;
};

/// Where a tile reads a and b: both in place, both in panels, or a in a panel and b in place, to write its panel.
enum class Tile { in_place, packed, packing_b };

/// What a tile reads. Row r of a begins at a + r * a_row, and its elements are a_column apart.
template <typename T>
struct Operands {
  const T* a;
  Size a_row, a_column;
  const T* b;
  Size b_row;
  const T* next;  ///< what a later tile will read, to be fetched into the second-level cache
  Size next_step;
  T* panel_of_b;  ///< what a tile that packs b writes
};

template <typename T, decltype(_MM_HINT_T0) where = _MM_HINT_T0>
void prefetch(const T* address) {
  _mm_prefetch(reinterpret_cast<const char*>(address), where);
}

/// c = a b, or c += a b where `add`, for a tile whose last register has `ragged` columns.
template <typename T, Tile kind, int rows, int registers>
void multiply_tile(Size depth, Operands<T> in, T* c, Size stride, Size ragged, bool add) {
  using V = Simd<T>;
  constexpr Size steps_ahead = ahead / (rows * registers);
  constexpr bool packed = kind != Tile::in_place, packs_b = kind == Tile::packing_b;
  if (packed) in.a_row = 1, in.a_column = rows;  // constants, for the compiler
  typename V::Register sum[rows][registers];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int s = 0; s < registers; ++s) {
      sum[r][s] = V::broadcast(0);
      prefetch(c + r * stride + s * V::lanes);
    }
  }
  for (Size p = 0; p < depth; ++p) {
    typename V::Register row[registers];
    if (packed) prefetch(in.a + steps_ahead * rows);
    prefetch<T, _MM_HINT_T1>(in.next);
#pragma GCC unroll 4
    for (int s = 0; s < registers; ++s) {
      row[s] = V::load(in.b + s * V::lanes);
      if (packs_b) V::store(in.panel_of_b + s * V::lanes, row[s]);
      if (s * V::lanes % line<T> == 0) prefetch(in.b + steps_ahead * in.b_row + s * V::lanes);
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const auto factor = V::broadcast(in.a[r * in.a_row]);
#pragma GCC unroll 4
      for (int s = 0; s < registers; ++s) sum[r][s] = V::multiply_add(factor, row[s], sum[r][s]);
    }
    in.a += in.a_column;
    in.b += in.b_row;
    if (packs_b) in.panel_of_b += registers * V::lanes;
    in.next += in.next_step;
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r, c += stride) {
#pragma GCC unroll 4
    for (int s = 0; s < registers; ++s) {
      T* const to = c + s * V::lanes;
      if (s < registers - 1 || ragged == V::lanes)
        V::store(to, add ? V::add(V::load(to), sum[r][s]) : sum[r][s]);
      else
        V::store_part(to, add ? V::add(V::load_part(to, ragged), sum[r][s]) : sum[r][s], ragged);
    }
  }
}

template <typename T>
using MultiplyTile = void (*)(Size depth, Operands<T> in, T* c, Size stride, Size ragged, bool add);

/// The tile of a size that is known only now.
template <typename T, Tile kind, int most_rows = rows_of_tile, int most_registers = registers_of_tile>
MultiplyTile<T> tile_of(Size rows, Size registers) {
  if constexpr (most_registers > 1) {
    if (registers < most_registers) return tile_of<T, kind, most_rows, most_registers - 1>(rows, registers);
  }
  if constexpr (most_rows > 1) {
    if (rows < most_rows) return tile_of<T, kind, most_rows - 1, most_registers>(rows, registers);
  }
  return multiply_tile<T, kind, most_rows, most_registers>;
}

/// A square of as many registers as each has lanes: to interleave its halves turns the places of its elements, counted
/// in binary by row and lane, by one digit; as many times as a lane has digits exchanges row and lane.
template <typename T>
void transpose(typename Simd<T>::Register* x) {
  using V = Simd<T>;
#pragma GCC unroll 4
  for (int turned = 1; turned < V::lanes; turned *= 2) {
    typename V::Register y[V::lanes];
#pragma GCC unroll 8
    for (int r = 0; r < V::lanes / 2; ++r) V::interleave(x[r], x[r + V::lanes / 2], y[2 * r], y[2 * r + 1]);
#pragma GCC unroll 16
    for (int r = 0; r < V::lanes; ++r) x[r] = y[r];
  }
}

/// `rows` rows of a, stored by columns. Writes up to a register past the panel's end.
template <typename T>
void pack_a(const T* a, Size stride, Size rows, Size depth, T* to) {
  using V = Simd<T>;
  Size p = 0;
  for (; p + V::lanes <= depth; p += V::lanes, a += V::lanes, to += V::lanes * rows) {
    // From the last rows on: what a store writes beyond its column is overwritten by those that follow.
    for (Size first = (rows - 1) / V::lanes * V::lanes; first >= 0; first -= V::lanes) {
      typename V::Register x[V::lanes];
#pragma GCC unroll 16
      for (Size r = 0; r < V::lanes; ++r) x[r] = V::load(a + least(first + r, rows - 1) * stride);
      transpose<T>(x);
#pragma GCC unroll 16
      for (Size q = 0; q < V::lanes; ++q) V::store(to + q * rows + first, x[q]);
    }
  }
  for (; p < depth; ++p, ++a) {
    for (Size r = 0; r < rows; ++r) *to++ = a[r * stride];
  }
}

/// `columns` columns of b, stored by rows that are filled up to whole registers with zeros.
template <typename T>
void pack_b(const T* b, Size stride, Size depth, Size columns, T* to) {
  using V = Simd<T>;
  constexpr Size rows_ahead = 8;  // more than a set of the cache holds, if rows are a power of two apart, is in vain
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

/// The columns of one panel after the other: each is some registers wide.
template <typename T>
struct Panels {
  Range columns;
  Split registers;
  explicit Panels(Range all) : columns(all), registers(parts(all.size(), Simd<T>::lanes), registers_of_tile) {}
  Size count() const { return registers.count; }
  Size begin(Size panel) const { return registers.begin(panel) * Simd<T>::lanes; }
  Size width(Size panel) const { return registers.of(panel) * Simd<T>::lanes; }
  Size columns_of(Size panel) const { return least(width(panel), columns.size() - begin(panel)); }
};

/// Packs the last panel of b if it has to be filled up to whole registers. Tiles pack the others or read them in place.
template <typename T, bool packed>
void pack_ragged_panel(const Product<T>& x, Range columns, Range depth, T* panels_of_b) {
  const Panels<T> panels(columns);
  const Size last = panels.count() - 1;
  if (panels.columns_of(last) == panels.width(last)) return;
  const T* const b = x.b + depth.begin * x.n + columns.begin + panels.begin(last);
  T* const to = panels_of_b + (packed ? panels.begin(last) * depth.size() : 0);
  pack_b(b, x.n, depth.size(), panels.columns_of(last), to);
}

/// Some rows of a, which `a` holds packed, times the panels of b; the `first` rows pack b.
template <typename T, bool packed>
void multiply_panels(const Product<T>& x, Range rows, Range columns, Range depth, const T* a, T* panels_of_b,
                     bool first) {
  constexpr Tile kind = packed ? Tile::packed : Tile::in_place;
  const Split tiles(rows.size(), rows_of_tile);
  const Panels<T> panels(columns);
  for (Size panel = 0; panel < panels.count(); ++panel) {
    const Size width = panels.width(panel), registers = panels.registers.of(panel);
    const Size j = columns.begin + panels.begin(panel), ragged = panels.columns_of(panel) - width + Simd<T>::lanes;
    const T* const b = x.b + depth.begin * x.n + j;
    T* const panel_of_b = panels_of_b + (packed ? panels.begin(panel) * depth.size() : 0);
    Operands<T> in = {a, x.k, 1, b, x.n, a, 0, panel_of_b};
    if (packed || ragged < Simd<T>::lanes) in.b = panel_of_b, in.b_row = width;
    // While b is packed, that is the memory of the next panel: to fetch it serves the writing as well.
    if (packed) in.next = in.b + width * depth.size(), in.next_step = parts(width, tiles.count);
    const auto higher = tile_of<T, kind>(least(tiles.size + 1, rows_of_tile), registers);
    const auto lower = tile_of<T, kind>(tiles.size, registers);
    for (Size tile = 0; tile < tiles.count; ++tile) {
      T* const c = x.c + (rows.begin + tiles.begin(tile)) * x.n + j;
      in.a = a + tiles.begin(tile) * (packed ? depth.size() : x.k);
      if (packed && first && tile == 0 && ragged == Simd<T>::lanes) {
        Operands<T> from = in;
        from.b = b, from.b_row = x.n;
        tile_of<T, Tile::packing_b>(tiles.of(0), registers)(depth.size(), from, c, x.n, ragged, depth.begin > 0);
      } else {
        (tile < tiles.larger ? higher : lower)(depth.size(), in, c, x.n, ragged, depth.begin > 0);
      }
      in.next += depth.size() * in.next_step;
    }
  }
}

/// The rows of a in panels as high as the tiles, to `to`; returns where the tiles read a.
template <typename T, bool packed>
const T* pack_rows(const Product<T>& x, Range rows, Range depth, T* to) {
  const T* const a = x.a + rows.begin * x.k + depth.begin;
  if (!packed) return a;
  const Split tiles(rows.size(), rows_of_tile);
  for (Size tile = 0; tile < tiles.count; ++tile) {
    pack_a(a + tiles.begin(tile) * x.k, x.k, tiles.of(tile), depth.size(), to + tiles.begin(tile) * depth.size());
  }
  return to;
}

thread_local Workspace workspace_of_a, workspace_of_b;

/// One thread's part of c; false where there is no memory for panels.
template <typename T, bool packed>
bool multiply(const Product<T>& x, Range rows, Range columns, Size threads) {
  const Split passes(x.k, most_depth<T>);
  const Size depth_of_pass = parts(x.k, passes.count), bytes_of_pass = depth_of_pass * Size(sizeof(T));
  // A quarter of a cache, since c and the other operand pass through it too.
  const Split blocks(rows.size(), second_level_cache() / 4 / bytes_of_pass + 1);
  const Size room = least(last_level_cache() / 4 / threads, most_bytes_of_b) / bytes_of_pass;
  const Size columns_of_pass = least(columns.size(), (room < 1024 ? 1024 : room) / Simd<T>::lanes * Simd<T>::lanes);
  const Size width = packed ? parts(columns_of_pass, Simd<T>::lanes) : registers_of_tile;
  T* const panels_of_b = workspace_of_b.hold<T>(width * Simd<T>::lanes * depth_of_pass);
  const Size elements_of_a = packed ? parts(rows.size(), blocks.count) * depth_of_pass + Simd<T>::lanes : 0;
  T* const panels_of_a = workspace_of_a.hold<T>(elements_of_a);
  if (panels_of_a == nullptr || panels_of_b == nullptr) return false;
  for (Size j = columns.begin; j < columns.end; j += columns_of_pass) {
    const Range columns_now = {j, least(j + columns_of_pass, columns.end)};
    for (Size pass = 0; pass < passes.count; ++pass) {
      const Range depth = {passes.begin(pass), passes.begin(pass) + passes.of(pass)};
      pack_ragged_panel<T, packed>(x, columns_now, depth, panels_of_b);
      for (Size block = 0; block < blocks.count; ++block) {
        const Size first = rows.begin + blocks.begin(block);
        const Range rows_now = {first, first + blocks.of(block)};
        const T* const a = pack_rows<T, packed>(x, rows_now, depth, panels_of_a);
        multiply_panels<T, packed>(x, rows_now, columns_now, depth, a, panels_of_b, block == 0);
      }
    }
  }
  return true;
}

/// c = a b for a vector b: rows of a times b, each in as many sums as it takes to keep adding while others are under way.
template <typename T>
void multiply_vector(const T* a, const T* b, T* c, Size m, Size k, Size threads) {
  using V = Simd<T>;
  constexpr Size sums = 8;
#pragma omp parallel for schedule(static) if (threads > 1)
  for (Size i = 0; i < m; ++i) {
    const T* const row = a + i * k;
    typename V::Register sum[sums];
#pragma GCC unroll 8
    for (Size s = 0; s < sums; ++s) sum[s] = V::broadcast(0);
    Size p = 0;
    for (; p + sums * V::lanes <= k; p += sums * V::lanes) {
#pragma GCC unroll 8
      for (Size s = 0; s < sums; ++s) {
        sum[s] = V::multiply_add(V::load(row + p + s * V::lanes), V::load(b + p + s * V::lanes), sum[s]);
      }
    }
    T lane[V::lanes], total = 0;
    for (Size s = 1; s < sums; ++s) sum[0] = V::add(sum[0], sum[s]);
    V::store(lane, sum[0]);
    for (Size s = 0; s < V::lanes; ++s) total += lane[s];
    for (; p < k; ++p) total += row[p] * b[p];
    c[i] = total;
  }
}

/// Into how many parts the columns of c are divided among threads, the rows into threads / that: every part packs its
/// rows of a and its columns of b by itself, so that no thread waits for another, and this packs the least.
Size parts_of_columns(Size threads, Size m, Size n) {
  Size best = 1;
  for (Size across = 1; across <= threads; ++across) {
    const auto packed = [=](Size count) { return m * count + n * (threads / count); };
    if (threads % across == 0 && packed(across) < packed(best)) best = across;
  }
  return best;
}

}  // namespace

template <typename T>
static bool matmul(const T* a, const T* b, T* c, std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr Size lanes = Simd<T>::lanes, few_rows = 2 * rows_of_tile, few_columns = 2 * registers_of_tile * lanes;
  if (m == 0 || n == 0) return true;
  for (Size i = 0; k == 0 && i < m * n; ++i) c[i] = 0;
  if (k == 0) return true;
  const Product<T> product = {a, b, c, m, n, k};
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
#if defined(_OPENMP)
  const Size threads = work > few_to_share ? omp_get_max_threads() : 1;
#else
  const Size threads = 1;
#endif
  if (n == 1) {
    multiply_vector(a, b, c, m, k, threads);
    return true;
  }
  const bool in_place = work / static_cast<double>(threads) <= few_to_pack || m <= few_rows || n <= few_columns;
  const auto multiply_part = in_place ? multiply<T, false> : multiply<T, true>;
  if (threads == 1) return multiply_part(product, {0, m}, {0, n}, threads);
  const Size across = parts_of_columns(threads, m, n), down = threads / across, registers = parts(n, lanes);
  bool enough_memory = true;
#pragma omp parallel for schedule(static) reduction(&& : enough_memory)
  for (Size part = 0; part < threads; ++part) {
    const Size i = part / across, j = part % across;
    const Range rows = {m * i / down, m * (i + 1) / down};
    const Range columns = {registers * j / across * lanes, least(registers * (j + 1) / across * lanes, n)};
    if (rows.size() > 0 && columns.size() > 0)
      enough_memory = multiply_part(product, rows, columns, threads) && enough_memory;
  }
  return enough_memory;
}

#endif
