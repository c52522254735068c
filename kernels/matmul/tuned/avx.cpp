// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Model: a tile of c stays in vector registers while a column of a and a row of b are multiplied into it; threads
//   take blocks of rows. (Goto and van de Geijn, Anatomy of high-performance matrix multiplication, ACM TOMS 34, 2008.)
// Memory: a and b are first packed into panels that the tile reads in order: b once for all threads, a by the thread
//   that needs it, in blocks that stay in its second-level cache. Small matrices are read where they are.
// Edges: panels of b are filled up with zeros, so that a ragged tile is computed like any other, and only its part of
//   c is written; the last rows have tiles of their own height.
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "../../simd.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace {

using Size = std::int64_t;

/// The tile of c that stays in registers: as many sums as there are registers, less those for a and b.
template <typename T>
struct Tile {
#if defined(__AVX512F__)
  static constexpr int rows = 14, registers = 2;  // 28 sums of 32 registers
#else
  static constexpr int rows = 6, registers = 2;  // 12 sums of 16
#endif
  static constexpr int columns = registers * Simd<T>::lanes;
};

/// Products summed in registers before a tile of c is read and written again: the longer, the less of c moves.
constexpr Size most_depth = 768;
/// Columns of b that are packed at once: with most_depth, some megabytes of the last-level cache.
constexpr Size most_columns = 4096;
/// Multiplications below which packing costs more than it saves, and below which a second thread does.
constexpr double few_to_pack = 96.0 * 96 * 96, few_to_share = 160.0 * 160 * 160;
/// How far ahead of its use, in steps of p, a panel is fetched from the second-level cache into the first.
constexpr int ahead_in_a = 16, ahead_in_b = 8;

Size least(Size x, Size y) { return x < y ? x : y; }
Size round_up(Size x, Size unit) { return (x + unit - 1) / unit * unit; }
Size threads_here() {
#if defined(_OPENMP)
  return omp_get_num_threads();
#else
  return 1;
#endif
}
void prefetch(const void* address) { _mm_prefetch(static_cast<const char*>(address), _MM_HINT_T0); }

/// Where the tile reads: element (r, p) of a, and the p-th row of b.
template <typename T>
struct Panels {
  const T* a;
  Size a_row, a_column;  // distances between neighbours in a column and in a row of a
  const T* b;
  Size b_row;
};

/// c = a b, or c += a b where `add`, for a tile of `rows` x `columns`.
template <typename T, bool packed, int rows>
void multiply_tile(Size k, Panels<T> in, T* c, Size stride, Size columns, bool add) {
  using V = Simd<T>;
  constexpr int registers = Tile<T>::registers;
  if (packed) in.a_row = 1, in.a_column = rows, in.b_row = Tile<T>::columns;  // constants, for the compiler
  typename V::Register sum[rows][registers];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int s = 0; s < registers; ++s) {
      sum[r][s] = V::broadcast(0);
      prefetch(c + r * stride + s * V::lanes);
    }
  }
  for (Size p = 0; p < k; ++p) {
    typename V::Register row[registers];
    prefetch(in.a + ahead_in_a * in.a_column);
#pragma GCC unroll 4
    for (int s = 0; s < registers; ++s) {
      row[s] = V::load(in.b + s * V::lanes);
      prefetch(in.b + ahead_in_b * in.b_row + s * V::lanes);
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const auto factor = V::broadcast(in.a[r * in.a_row]);
#pragma GCC unroll 4
      for (int s = 0; s < registers; ++s) sum[r][s] = V::multiply_add(factor, row[s], sum[r][s]);
    }
    in.a += in.a_column;
    in.b += in.b_row;
  }
  T part[Tile<T>::columns];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r, c += stride) {
    const bool whole = columns == Tile<T>::columns;
#pragma GCC unroll 4
    for (int s = 0; s < registers; ++s) {
      T* const to = c + s * V::lanes;
      if (whole)
        V::store(to, add ? V::add(V::load(to), sum[r][s]) : sum[r][s]);
      else
        V::store(part + s * V::lanes, sum[r][s]);
    }
    if (!whole) {
      for (Size j = 0; j < columns; ++j) c[j] = add ? c[j] + part[j] : part[j];
    }
  }
}

/// The tile for a number of rows that is known only now.
template <typename T, bool packed, int rows = Tile<T>::rows>
void multiply_rows(Size count, Size k, Panels<T> in, T* c, Size stride, Size columns, bool add) {
  if (count == rows) return multiply_tile<T, packed, rows>(k, in, c, stride, columns, add);
  if constexpr (rows > 1) multiply_rows<T, packed, rows - 1>(count, k, in, c, stride, columns, add);
}

/// Rows of a in panels of Tile::rows, each stored by columns. Reads a cache line of every row before the next.
template <typename T>
void pack_a(const T* a, Size stride, Size rows, Size depth, T* to) {
  constexpr Size line = 64 / sizeof(T);
  constexpr int height = Tile<T>::rows;
  for (Size i = 0; i < rows; i += height, a += height * stride) {
    const Size count = least(height, rows - i);
    Size p = 0;
    for (; count == height && p + line <= depth; p += line, to += line * height) {
      for (int r = 0; r < height; ++r) {
#pragma GCC unroll 16
        for (int q = 0; q < line; ++q) to[q * height + r] = a[r * stride + p + q];
      }
    }
    for (; p < depth; ++p) {
      for (Size r = 0; r < count; ++r) *to++ = a[r * stride + p];
    }
  }
}

/// One panel of Tile::columns columns of b, stored by rows; columns that b has not are zeros.
template <typename T>
void pack_b(const T* b, Size stride, Size depth, Size columns, T* to) {
  using V = Simd<T>;
  constexpr int width = Tile<T>::columns;
  for (Size p = 0; p < depth; ++p, b += stride, to += width) {
    if (columns == width) {
      for (int s = 0; s < width; s += V::lanes) V::store(to + s, V::load(b + s));
    } else {
      for (Size j = 0; j < width; ++j) to[j] = j < columns ? b[j] : T(0);
    }
  }
}

/// Memory for panels, kept by each thread for its next call: taking it anew would cost more than a small product.
struct Workspace {
  void* memory = nullptr;
  Size bytes = 0;

  template <typename T>
  T* hold(Size elements) {
    constexpr Size page = Size(1) << 21;  // a large page, where the system has them: fewer to look up
    if (bytes < elements * Size(sizeof(T))) {
      free(memory);
      bytes = round_up(elements * Size(sizeof(T)), page);
      if (posix_memalign(&memory, page, bytes) != 0) abort();
      madvise(memory, bytes, MADV_HUGEPAGE);
    }
    return static_cast<T*>(memory);
  }
  ~Workspace() { free(memory); }
};
thread_local Workspace workspace_of_a, workspace_of_b;

/// Rows of a in one block: at most a quarter of the second-level cache, and as many blocks for each thread.
template <typename T>
Size rows_of_a_block(Size m, Size depth) {
  static const Size cache = sysconf(_SC_LEVEL2_CACHE_SIZE) > 0 ? sysconf(_SC_LEVEL2_CACHE_SIZE) : Size(1) << 20;
  const Size most = cache / 4 / (depth * Size(sizeof(T)));
  const Size blocks = round_up(m / (most > 0 ? most : 1) + 1, threads_here());
  return round_up((m + blocks - 1) / blocks, Tile<T>::rows);
}

/// Small matrices stay in the caches whatever the order: only a ragged panel of b is packed, to fill it up.
template <typename T>
void multiply_small(const T* a, const T* b, T* c, Size m, Size n, Size k) {
  constexpr Size height = Tile<T>::rows, width = Tile<T>::columns;
  for (Size j = 0; j < n; j += width) {
    const Size columns = least(width, n - j);
    Panels<T> in = {a, k, 1, b + j, n};
    if (columns < width) {
      T* const panel = workspace_of_b.hold<T>(k * width);
      pack_b(b + j, n, k, columns, panel);
      in.b = panel, in.b_row = width;
    }
    for (Size i = 0; i < m; i += height, in.a += height * k) {
      multiply_rows<T, false>(least(height, m - i), k, in, c + i * n + j, n, columns, false);
    }
  }
}

}  // namespace

template <typename T>
static void matmul(const T* a, const T* b, T* c, std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr Size height = Tile<T>::rows, width = Tile<T>::columns;
  const double work = static_cast<double>(m) * n * k;
  if (m == 0 || n == 0) return;
  if (work <= few_to_pack && k <= most_depth) return multiply_small(a, b, c, m, n, k);
  const Size passes = (k + most_depth - 1) / most_depth;
  const Size depth_of_pass = passes > 0 ? (k + passes - 1) / passes : 0;
  const Size columns_of_pass = least(round_up(n, width), most_columns);
  T* const packed_b = workspace_of_b.hold<T>(columns_of_pass * depth_of_pass);
#pragma omp parallel if (work > few_to_share)
  {
    const Size rows_of_block = rows_of_a_block<T>(m, depth_of_pass);
    T* const packed_a = workspace_of_a.hold<T>(rows_of_block * depth_of_pass);
    for (Size j0 = 0; j0 < n; j0 += columns_of_pass) {
      const Size columns = least(columns_of_pass, n - j0);
      for (Size p0 = 0; p0 < k; p0 += depth_of_pass) {
        const Size depth = least(depth_of_pass, k - p0);
#pragma omp for schedule(static)
        for (Size j = 0; j < columns; j += width) {
          pack_b(b + p0 * n + j0 + j, n, depth, least(width, columns - j), packed_b + j * depth);
        }
#pragma omp for schedule(dynamic)
        for (Size i0 = 0; i0 < m; i0 += rows_of_block) {
          const Size rows = least(rows_of_block, m - i0);
          pack_a(a + i0 * k + p0, k, rows, depth, packed_a);
          for (Size j = 0; j < columns; j += width) {
            for (Size i = 0; i < rows; i += height) {
              const Panels<T> in = {packed_a + i * depth, 1, height, packed_b + j * depth, width};
              T* const tile = c + (i0 + i) * n + j0 + j;
              multiply_rows<T, true>(least(height, rows - i), depth, in, tile, n, least(width, columns - j), p0 > 0);
            }
          }
        }
      }
    }
  }
}
