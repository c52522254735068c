// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Model: on a CPU, work items first pack a and b, and then take blocks of c, tile by tile. A tile stays in vector
//   registers while columns of a and rows of b are multiplied into it. On a GPU, a group of work items shares slices of
//   a and b in local memory, and every item has a tile of c in its registers.
// Memory: b is packed into panels as wide as the tile, a into panels as high. So both are read in order from the
//   second-level cache. A panel of a holds a run of each row, one row after another, so that packing it moves vectors.
//   Elements are widened when they are packed, or copied to local memory. On a CPU int8 becomes floats, which multiply
//   and add in one instruction, integers in two. The sums of a pass are exact in floats.
//   Where one work item has all of c, it packs the panels of one pass after the other: whole ones would be many times as
//   large as narrow a and b.
// Edges: panels are filled up with zeros. So a ragged tile is computed like any other, and only its part of c is
//   written. Where the last vector of columns is enough, the tile is as wide. Slices on a GPU are filled up alike.
// ---
// Formats on amx: float16, bfloat16, int8
// Work items of pack on a CPU: ceil(n / 128) + ceil(m / 84) x ceil(k / 256), in groups of 1 x 1
// Work items of multiply on a CPU: ceil(m / 84) x ceil(n / 128), in groups of 1 x 1
// Work items on a GPU: ceil(n / 4) x ceil(m / 8), in groups of 16 x 16
// Work items of pack_tiles on AMX: ceil(m / 32) + ceil(n / 32) x ceil(k / 256), in groups of 1 x 1
// Work items of multiply_blocks on AMX: 16 * ceil(n / 128) x ceil(m / 128), in groups of 16 x 1
// Scratch on a CPU: ceil(n / 128) * 128 * k + ceil(m / 84) * 84 * ceil(k / 8) * 8 elements of Sum, or 162816 where n <=
//   128 and m <= 84
// Scratch on AMX: ceil(m / 32) * 32 * ceil(k / 32) * 32 + ceil(n / 32) * 32 * ceil(k / 32) * 32 elements of Sum
#if defined(TILES)
#include "sycl_amx.hpp"
#else

#include <sycl/sycl.hpp>

#include "../../formats.hpp"

namespace syclexp = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
using Size = std::int64_t;

/// Most columns and rows of c of one work item on a CPU: whole tiles of any size below.
constexpr Size block_columns = 128, block_rows = 84;
/// Rows of b, or columns of a, that one work item packs.
constexpr Size packed_depth = 256;
/// Products summed in registers before a tile of c is read and written again. The more, the less of c moves.
constexpr Size most_depth = 768;

/// What panels hold and tiles compute with.
template <typename T>
struct FactorOf {
  using Type = Sum<T>;
};
template <>
struct FactorOf<std::int8_t> {
  static_assert(most_depth * 128 * 128 <= 1 << 24, "the largest sum that a float holds exactly");
  using Type = float;
};
template <typename T>
using Factor = typename FactorOf<T>::Type;

/// The tile of c that stays in registers. It has 24 sums where there are 32 registers, which are those of 64 bytes,
/// else 12. The compiler uses some of the others for elements of a, and would spill with 14 rows.
template <typename T>
struct Tile {
  static constexpr Size lanes = LANES, registers = 2, columns = registers * lanes;
  static constexpr Size rows = lanes * sizeof(T) >= 64 ? 12 : 6;
};
/// Neighbours in a row of a that stay together when it is packed, and unrolled steps of the inner loop.
constexpr Size run = 8;

template <typename T, Size size>
using Vector = T __attribute__((ext_vector_type(size)));
/// A vector that begins at any element. (It is no alias template, since clang would forget that one's alignment.)
template <typename T, Size size>
struct __attribute__((packed)) Loose {
  Vector<T, size> v;
};

inline Size round_up(Size x, Size unit) { return (x + unit - 1) / unit * unit; }

template <Size size, typename T>
Vector<T, size> load(const T* from) {
  return reinterpret_cast<const Loose<T, size>*>(from)->v;
}
template <Size size, typename T>
void store(T* to, Vector<T, size> value) {
  reinterpret_cast<Loose<T, size>*>(to)->v = value;
}
/// Loads and widens `size` elements, as widen() does one. Of calls of widen() the compiler makes no vectors.
template <Size size, typename T>
Vector<T, size> load_factors(const T* from) {
  return load<size>(from);
}
template <Size size>
Vector<float, size> load_factors(const std::int8_t* from) {
  return __builtin_convertvector(load<size>(from), Vector<float, size>);
}
template <Size size>
Vector<float, size> load_factors(const BFloat16* from) {
  using Words = Vector<std::uint32_t, size>;
  const Words bits = __builtin_convertvector(load<size>(&from->bits), Words);
  return reinterpret_cast<Vector<float, size>>(bits << 16);
}
template <Size size>
Vector<float, size> load_factors(const Float16* from) {
  using Words = Vector<std::uint32_t, size>;
  using Floats = Vector<float, size>;
  const auto halves = reinterpret_cast<Vector<std::int16_t, size>>(load<size>(&from->bits));
  const Words extended = reinterpret_cast<Words>(__builtin_convertvector(halves, Vector<std::int32_t, size>));
  const Words bits = extended << 13 & 0x8fffe000u;
  const Words infinite = reinterpret_cast<Words>((bits & 0xf800000u) == 0xf800000u) & 0x7f800000u;
  const Words wide = reinterpret_cast<Words>(reinterpret_cast<Floats>(bits) * 0x1p112f);
  return reinterpret_cast<Floats>(wide | infinite);
}
/// Copies and widens `size` elements. Where there are only `count`, zeros follow.
template <Size size, typename T>
void copy(const T* from, Factor<T>* to, Size count) {
  if (count >= size) return store<size>(to, load_factors<size>(from));
  for (Size q = 0; q < size; ++q) to[q] = q < count ? widen(from[q]) : 0;
}

/// Whether `multiply` packs what it needs, pass by pass, and `pack` nothing.
inline bool packs_by_passes(Size m, Size n, Size k) { return n <= block_columns && m <= block_rows && k > most_depth; }

/// Where panels lie in scratch memory: first those of b, then those of a. They have `depth` rows of b and columns of a.
template <typename T>
struct Panels {
  T* const b;
  T* const a;
  const Size b_column, a_row;  // elements of a panel for each of its columns or rows

  Panels(T* scratch, Size n, Size depth)
      : b(scratch), a(scratch + round_up(n, block_columns) * depth), b_column(depth), a_row(round_up(depth, run)) {}
};

/// Packs rows p0 to p1 of a block of b, in panels stored by rows.
template <typename T>
void pack_b(const T* b, const Panels<Factor<T>>& to, Size j0, Size p0, Size p1, Size n) {
  constexpr Size lanes = Tile<Factor<T>>::lanes, width = Tile<Factor<T>>::columns;
  for (Size p = p0; p < p1; ++p) {
    for (Size j = j0; j < sycl::min(n, j0 + block_columns); j += width) {
      Factor<T>* const row = to.b + j * to.b_column + p * width;
      for (Size s = 0; s < width; s += lanes) copy<lanes>(b + p * n + j + s, row + s, n - j - s);
    }
  }
}

/// Packs columns p0 to p1 of a block of a, in panels that hold a run of each row, one row after another.
template <typename T>
void pack_a(const T* a, const Panels<Factor<T>>& to, Size i0, Size p0, Size p1, Size m, Size k) {
  constexpr Size height = Tile<Factor<T>>::rows;
  for (Size i = i0; i < sycl::min(m, i0 + block_rows); i += height) {
    for (Size p = p0; p < p1; p += run) {
      Factor<T>* const runs = to.a + i * to.a_row + p * height;
      for (Size r = 0; r < height; ++r) copy<run>(a + (i + r) * k + p, runs + r * run, i + r < m ? p1 - p : 0);
    }
  }
}

/// Packs one block of b, or of a, which follow those of b. A group is one item, so that the compiler makes no vectors
/// across items.
template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<2>))
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::work_group_size<1, 1>))
void pack(const T* a, const T* b, Sum<T>* c, Factor<T>* scratch, std::int64_t m, std::int64_t n, std::int64_t k) {
  if (packs_by_passes(m, n, k)) return;
  const auto item = get_nd_item<2>();
  const Size block = item.get_global_id(1), blocks_of_b = round_up(n, block_columns) / block_columns;
  const Size p0 = item.get_global_id(0) * packed_depth, p1 = sycl::min(k, p0 + packed_depth);
  const Panels<Factor<T>> panels(scratch, n, k);
  if (block < blocks_of_b) {
    pack_b(b, panels, block * block_columns, p0, p1, n);
  } else {
    pack_a(a, panels, (block - blocks_of_b) * block_rows, p0, p1, m, k);
  }
}

/// Adds the products of a column of a and a row of b, all in registers.
template <typename T, Size rows, Size registers>
[[clang::always_inline]] void multiply_add(Vector<T, Tile<T>::lanes> (&sum)[rows][registers], const T* a, const T* b) {
#pragma unroll
  for (Size r = 0; r < rows; ++r) {
#pragma unroll
    for (Size s = 0; s < registers; ++s) sum[r][s] += a[r * run] * load<Tile<T>::lanes>(b + s * Tile<T>::lanes);
  }
}

/// c = a b, or c += a b where `add`, for a tile of which c has `height` rows and `width` columns.
template <typename S, Size registers, typename T>
void multiply_tile(const T* a, const T* b, S* c, Size depth, Size stride, Size height, Size width, bool add) {
  constexpr Size lanes = Tile<T>::lanes, rows = Tile<T>::rows;
  Vector<T, lanes> sum[rows][registers] = {};
  Size p = 0;
  for (; p + run <= depth; p += run, a += rows * run) {
#pragma unroll(registers > 1 ? run : 1)  // the narrow tile is rare, and the compiler takes its time for each
    for (Size q = 0; q < run; ++q, b += Tile<T>::columns) multiply_add(sum, a + q, b);
  }
  for (; p < depth; ++p, ++a, b += Tile<T>::columns) multiply_add(sum, a, b);
  const bool whole = height >= rows && width >= registers * lanes;
  S part[rows][registers * lanes];
#pragma unroll
  for (Size r = 0; r < rows; ++r) {
#pragma unroll
    for (Size s = 0; s < registers; ++s) {
      S* const to = c + r * stride + s * lanes;
      const auto total = __builtin_convertvector(sum[r][s], Vector<S, lanes>);
      if (whole) {
        store<lanes>(to, add ? load<lanes>(to) + total : total);
      } else {
        store<lanes>(part[r] + s * lanes, total);
      }
    }
  }
  if (whole) return;
  for (Size r = 0; r < sycl::min(height, rows); ++r) {
    for (Size q = 0; q < sycl::min(width, registers * lanes); ++q) {
      S& element = c[r * stride + q];
      element = add ? element + part[r][q] : part[r][q];
    }
  }
}

/// Columns of each of so many blocks. All have equally many whole panels, so that no thread waits for another.
template <typename T>
Size block_width(Size n, Size blocks) {
  return round_up((n + blocks - 1) / blocks, Tile<T>::columns);
}

/// Computes one block of c. In each pass, every panel of b stays in the cache while the panels of a pass by.
template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<2>))
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::work_group_size<1, 1>))
void multiply(const T* a, const T* b, Sum<T>* c, Factor<T>* scratch, std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto item = get_nd_item<2>();
  const Size i0 = item.get_global_id(1) * block_rows;
  using S = Sum<T>;
  using F = Factor<T>;
  const Size width = block_width<F>(n, item.get_global_range(0)), j0 = item.get_global_id(0) * width;
  const bool by_passes = packs_by_passes(m, n, k);
  for (Size p = 0; p == 0 || p < k; p += most_depth) {
    const Size depth = sycl::min(k - p, most_depth);
    const Size first = by_passes ? 0 : p;
    const Panels<F> panels(scratch, n, by_passes ? depth : k);
    if (by_passes) {
      pack_b(b + p * n, panels, 0, 0, depth, n);
      pack_a(a + p, panels, 0, 0, depth, m, k);
    }
    for (Size j = j0; j < sycl::min(n, j0 + width); j += Tile<F>::columns) {
      const F* const panel_of_b = panels.b + j * panels.b_column + first * Tile<F>::columns;
      for (Size i = i0; i < sycl::min(m, i0 + block_rows); i += Tile<F>::rows) {
        const F* const panel_of_a = panels.a + i * panels.a_row + first * Tile<F>::rows;
        if (n - j > Tile<F>::lanes) {
          multiply_tile<S, Tile<F>::registers>(panel_of_a, panel_of_b, c + i * n + j, depth, n, m - i, n - j, p > 0);
        } else {
          multiply_tile<S, 1>(panel_of_a, panel_of_b, c + i * n + j, depth, n, m - i, n - j, p > 0);
        }
      }
    }
  }
}

/// On a GPU: rows and columns of a work item's tile, work items of a group in each dimension, and the depth of slices.
constexpr Size item_rows = 8, item_columns = 4, side = 16, slice = 16;

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<2>))
void matmul(const T* a, const T* b, Sum<T>* c, std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr Size group_rows = item_rows * side, group_columns = item_columns * side;
  static syclexp::work_group_static<Sum<T>[group_rows][slice + 1]> slice_of_a;  // one more: rows lie in other banks
  static syclexp::work_group_static<Sum<T>[slice][group_columns]> slice_of_b;
  const auto item = get_nd_item<2>();
  const Size x = item.get_local_id(1), y = item.get_local_id(0), number = item.get_local_linear_id();
  const Size i0 = item.get_group(0) * group_rows, j0 = item.get_group(1) * group_columns;
  Sum<T>(&part_of_a)[group_rows][slice + 1] = slice_of_a;
  Sum<T>(&part_of_b)[slice][group_columns] = slice_of_b;
  Sum<T> sum[item_rows][item_columns] = {};
  for (Size p0 = 0; p0 < k; p0 += slice) {
    for (Size at = number; at < group_rows * slice; at += side * side) {
      const Size i = i0 + at / slice, p = p0 + at % slice;
      part_of_a[at / slice][at % slice] = i < m && p < k ? widen(a[i * k + p]) : 0;
    }
    for (Size at = number; at < slice * group_columns; at += side * side) {
      const Size p = p0 + at / group_columns, j = j0 + at % group_columns;
      part_of_b[at / group_columns][at % group_columns] = p < k && j < n ? widen(b[p * n + j]) : 0;
    }
    sycl::group_barrier(item.get_group());
    for (Size p = 0; p < slice; ++p) {
#pragma unroll
      for (Size r = 0; r < item_rows; ++r) {
#pragma unroll
        for (Size s = 0; s < item_columns; ++s) {
          sum[r][s] += part_of_a[r * side + y][p] * part_of_b[p][s * side + x];
        }
      }
    }
    sycl::group_barrier(item.get_group());
  }
#pragma unroll
  for (Size r = 0; r < item_rows; ++r) {
#pragma unroll
    for (Size s = 0; s < item_columns; ++s) {
      const Size i = i0 + r * side + y, j = j0 + s * side + x;  // neighbouring work items write neighbouring columns
      if (i < m && j < n) c[i * n + j] = sum[r][s];
    }
  }
}

#endif
