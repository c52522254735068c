// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Idea: a tile of c stays in vector registers while a column of a and a row of b are multiplied into it. (Goto and van
//   de Geijn, Anatomy of high-performance matrix multiplication, ACM TOMS 34, 2008.)
// Model: intrinsics name the registers and what is prefetched. Each thread computes a part of c by itself.
// Memory: a and b are packed into panels that the tile reads in order. Blocks of a stay in the second-level cache,
//   those of b in the last. Tiles pack b on the way, which hides the cost behind their arithmetic. With one block of a
//   the first tile to need a panel of b reads it in place and packs it. With several, the tiles of the first block pack
//   the next panel, a row at a time between their steps. Small and thin matrices are read where they are. The narrower
//   formats are always packed, which widens 16 bits to floats and int8 to pairs of 16 bits. Dot products take them as
//   they are. AVX-512 VNNI multiplies four int8, AVX-512 BF16 two bfloat16, of which subnormal ones count as zeros.
// Edges: rows and registers are divided evenly among tiles, so that none is much smaller than another. Only the last
//   register of a row of c may be ragged. It is loaded and stored in part.
// ---
// Formats on amx: float16, bfloat16, int8
#if defined(__AMX_TILE__)
#include "amx.hpp"
#else

#include <cstdint>

#include "avx_packing.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace {

/// Steps along k for which a tile's sums stay in registers, before it reads its part of c again. The more, the less of c
/// moves, but the fewer rows of a fit in the cache.
constexpr Size most_depth = 1024;
/// Up to so many multiplications of one thread, packing costs more than it saves. Up to so many in all, threads do.
constexpr double few_to_pack = 128.0 * 128 * 128, few_to_share = 100.0 * 100 * 100;
/// What a thread's panels of b may take of the last-level cache. Where others share it, no thread has more.
constexpr Size most_bytes_of_b = Size(32) << 20;

/// Divides a whole into the fewest parts of at most `most`. They differ by one at most.
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
  Sum<T>* c;
  Size m, n, k;
};

/// Whether tiles can read elements of T in place.
template <typename T, typename P>
constexpr bool as_packed = std::is_same_v<T, P>;

/// Rows of a panel of b.
template <typename P>
Size rows_of_panel(Range depth) {
  return parts(depth.size(), products<P>) + (has_offsets<P> ? 1 : 0);
}

/// The columns in panels, one after the other, each some registers wide.
template <typename P>
struct Panels {
  Range columns;
  Split registers;
  explicit Panels(Range all) : columns(all), registers(parts(all.size(), Simd<P>::lanes), registers_of_tile) {}
  Size count() const { return registers.count; }
  Size begin(Size panel) const { return registers.begin(panel) * Simd<P>::lanes; }
  Size width(Size panel) const { return registers.of(panel) * Simd<P>::lanes; }
  Size columns_of(Size panel) const { return least(width(panel), columns.size() - begin(panel)); }
  bool is_ragged(Size panel) const { return columns_of(panel) < width(panel); }
};

/// Who packs a panel of b: nobody any more, the first tile that needs it, or the tiles of the panel before it.
enum class Packs { nobody, first_tile, panel_before };

/// Packs the first panel of b if no tile of a panel before it can, and the last one if it has to be filled up to whole
/// registers. Tiles pack the other panels or read them in place.
template <typename T, bool packed>
void pack_panels_before_tiles(const Product<T>& x, Range columns, Range depth, Packs packs, T* panels_of_b) {
  const Panels<T> panels(columns);
  const Size last = panels.count() - 1;
  const auto pack = [&](Size panel) {
    const T* const b = x.b + depth.begin * x.n + columns.begin + panels.begin(panel);
    pack_b(b, x.n, depth.size(), panels.columns_of(panel),
           panels_of_b + (packed ? panels.begin(panel) * depth.size() : 0));
  };
  if (packs == Packs::panel_before && !panels.is_ragged(0)) pack(0);
  if (panels.is_ragged(last)) pack(last);
}

/// A tile's share of the rows of the next panel of b, which begins at `to` once it is packed. None of a ragged panel.
template <typename T>
RowsToPack<T> share_of_rows(const Product<T>& x, const Panels<T>& panels, Size next, Range depth, Size tile, Size tiles,
                            T* to) {
  if (next == panels.count() || panels.is_ragged(next)) return {};
  const Size most = parts(depth.size(), tiles), begin = least(tile * most, depth.size());
  const Size count = least(most, depth.size() - begin), width = panels.width(next);
  const T* const from = x.b + (depth.begin + begin) * x.n + panels.columns.begin + panels.begin(next);
  return {from, x.n, to + begin * width, width, count, depth.size() / most};
}

/// Multiplies some rows of a, packed in `a`, by the panels of b.
template <typename T, typename P, bool packed>
void multiply_panels(const Product<T>& x, Range rows, Range columns, Range depth, const P* a, P* panels_of_b,
                     Packs packs) {
  constexpr Tile kind = packed ? Tile::packed : Tile::in_place;
  const Split tiles(rows.size(), rows_of_tile<P>);
  const Panels<P> panels(columns);
  const Size steps = parts(depth.size(), products<P>), height = rows_of_panel<P>(depth);
  for (Size panel = 0; panel < panels.count(); ++panel) {
    const Size width = panels.width(panel), registers = panels.registers.of(panel);
    const Size j = columns.begin + panels.begin(panel), ragged = panels.columns_of(panel) - width + Simd<P>::lanes;
    const T* const b = x.b + depth.begin * x.n + j;
    P* const panel_of_b = panels_of_b + (packed ? panels.begin(panel) * height : 0);
    P* const next_panel = panel_of_b + width * height;
    Operands<P> in = {a, x.k, 1, panel_of_b, width, a, 0, panel_of_b, {}};
    bool in_place = false;
    if constexpr (as_packed<T, P>) {
      in_place = !panels.is_ragged(panel) && (!packed || packs == Packs::first_tile);
      if (in_place) in.b = b, in.b_row = x.n;
    } else if (packs != Packs::nobody) {
      pack_b(b, x.n, depth.size(), panels.columns_of(panel), panel_of_b);
    }
    // While b is packed, `next` is the memory of the next panel. Prefetching it serves writing it as well.
    if (packed) in.next = next_panel, in.next_step = parts(width, tiles.count);
    const auto higher = tile_of<P, kind>(least(tiles.size + 1, rows_of_tile<P>), registers);
    const auto lower = tile_of<P, kind>(tiles.size, registers);
    for (Size tile = 0; tile < tiles.count; ++tile) {
      Sum<T>* const c = x.c + (rows.begin + tiles.begin(tile)) * x.n + j;
      in.a = a + tiles.begin(tile) * (packed ? steps : x.k);
      auto multiply_tile = tile < tiles.larger ? higher : lower;
      if constexpr (as_packed<T, P> && packed) {
        if (in_place && tile == 0) multiply_tile = tile_of<P, Tile::packing_b>(tiles.of(0), registers);
        if (tile == 1) in.b = panel_of_b, in.b_row = width;
        if (packs == Packs::panel_before) {
          in.rows_to_pack = share_of_rows<T>(x, panels, panel + 1, depth, tile, tiles.count, next_panel);
          if (in.rows_to_pack.count > 0) multiply_tile = tile_of<P, Tile::packing_next>(tiles.of(tile), registers);
        }
      }
      multiply_tile(steps, in, c, x.n, ragged, depth.begin > 0);
      in.next += steps * in.next_step;
    }
  }
}

/// Packs the rows of a to `to`, in panels as high as the tiles. Returns where the tiles read a.
template <typename T, typename P, bool packed>
const P* pack_rows(const Product<T>& x, Range rows, Range depth, P* to) {
  const T* const a = x.a + rows.begin * x.k + depth.begin;
  if constexpr (!packed) return a;
  const Split tiles(rows.size(), rows_of_tile<P>);
  const Size steps = parts(depth.size(), products<P>);
  for (Size tile = 0; tile < tiles.count; ++tile) {
    pack_a(a + tiles.begin(tile) * x.k, x.k, tiles.of(tile), depth.size(), to + tiles.begin(tile) * steps);
  }
  return to;
}

thread_local Workspace workspace_of_a, workspace_of_b;

/// Computes one thread's part of c; false where there is no memory for panels.
template <typename T, typename P, bool packed>
bool multiply(const Product<T>& x, Range rows, Range columns, Size threads) {
  constexpr Size lanes = Simd<P>::lanes;
  const Size steps = parts(x.k, products<P>);
  const Split passes(steps, most_depth);
  const Size depth_of_pass = parts(steps, passes.count), bytes_of_pass = depth_of_pass * Size(sizeof(P));
  // A quarter of a cache, since c and the other operand also pass through it.
  const Split blocks(rows.size(), second_level_cache() / 4 / bytes_of_pass + 1);
  const Packs in_first_block = as_packed<T, P> && packed && blocks.count > 1 ? Packs::panel_before : Packs::first_tile;
  const Size room = least(last_level_cache() / 4 / threads, most_bytes_of_b) / bytes_of_pass;
  const Size columns_of_pass = least(columns.size(), (room < 1024 ? 1024 : room) / lanes * lanes);
  const Size width = packed ? parts(columns_of_pass, lanes) : registers_of_tile;
  P* const panels_of_b = workspace_of_b.hold<P>(width * lanes * (depth_of_pass + (has_offsets<P> ? 1 : 0)));
  const Size elements_of_a = packed ? parts(rows.size(), blocks.count) * depth_of_pass + lanes : 0;
  P* const panels_of_a = workspace_of_a.hold<P>(elements_of_a);
  if (panels_of_a == nullptr || panels_of_b == nullptr) return false;
  for (Size j = columns.begin; j < columns.end; j += columns_of_pass) {
    const Range columns_now = {j, least(j + columns_of_pass, columns.end)};
    for (Size pass = 0; pass < passes.count; ++pass) {
      const Size begin = passes.begin(pass) * products<P>;
      const Range depth = {begin, least(begin + passes.of(pass) * products<P>, x.k)};
      if constexpr (as_packed<T, P>)
        pack_panels_before_tiles<T, packed>(x, columns_now, depth, in_first_block, panels_of_b);
      for (Size block = 0; block < blocks.count; ++block) {
        const Size first = rows.begin + blocks.begin(block);
        const Range rows_now = {first, first + blocks.of(block)};
        const P* const a = pack_rows<T, P, packed>(x, rows_now, depth, panels_of_a);
        multiply_panels<T, P, packed>(x, rows_now, columns_now, depth, a, panels_of_b,
                                      block == 0 ? in_first_block : Packs::nobody);
      }
    }
  }
  return true;
}

/// c = a b for a vector b. Each row of a times b has several sums, so that no addition waits for another.
template <typename T>
void multiply_vector(const T* a, const T* b, Sum<T>* c, Size m, Size k, Size threads) {
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
    Sum<T> lane[V::lanes], total = 0;
    for (Size s = 1; s < sums; ++s) sum[0] = V::add(sum[0], sum[s]);
    V::store(lane, sum[0]);
    for (Size s = 0; s < V::lanes; ++s) total += lane[s];
    for (; p < k; ++p) total += widen(row[p]) * widen(b[p]);
    c[i] = total;
  }
}

/// How many parts the columns of c are divided into for threads. The rows are divided into threads / that. Every part
/// packs its own rows of a and columns of b, so that no thread waits for another. This division packs the least.
Size parts_of_columns(Size threads, Size m, Size n) {
  Size best = 1;
  for (Size across = 1; across <= threads; ++across) {
    const auto packed = [=](Size count) { return m * count + n * (threads / count); };
    if (threads % across == 0 && packed(across) < packed(best)) best = across;
  }
  return best;
}

/// What computes one thread's part. Formats that have to be widened are always packed, whatever that costs.
template <typename T>
auto multiply_of(bool in_place) {
  if constexpr (std::is_same_v<T, std::int8_t>) {
#if defined(__AVX512F__)
    if (__builtin_cpu_supports("avx512vnni")) return multiply<T, Quad, true>;
#endif
    return multiply<T, Pair, true>;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
#if defined(__AVX512F__)
    if (has_fast_pairs_of_bfloat16()) return multiply<T, BFloat16Pair, true>;
#endif
    return multiply<T, float, true>;
  } else if constexpr (as_packed<T, Sum<T>>) {
    return in_place ? multiply<T, T, false> : multiply<T, T, true>;
  } else {
    return multiply<T, Sum<T>, true>;
  }
}

}  // namespace

template <typename T>
static bool matmul(const T* a, const T* b, Sum<T>* c, std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr Size lanes = Simd<T>::lanes, few_rows = 2 * rows_of_tile<T>, few_columns = 2 * registers_of_tile * lanes;
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
  const auto multiply_part = multiply_of<T>(in_place);
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
