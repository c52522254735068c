// transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
// Idea: on a CPU, a work item turns a tile over in registers, square by square, on its way to local memory. From there
//   it streams whole cache lines of c past the caches. On a GPU, a group turns a tile over in local memory, so that it
//   reads and writes neighbours.
// Model: on a CPU, a work item has a block of 96 rows of c and up to 512 columns. On a GPU, it moves four elements.
// Memory: an ordinary store first reads the line that it overwrites, a third of all traffic here. So c is streamed
//   where the matrices exceed the cache. Neighbouring rows of a lie further apart than the CPU's own prefetching
//   reaches: a work item prefetches by itself. Rows of a tile on a GPU are padded by an element, so that those of a
//   column lie in different banks.
// Edges: tiles of c end where lines begin, in each row elsewhere. So only the ends of a row of c are parts of lines,
//   which are stored element by element. What is left of a tile beside its squares is moved element by element too.
// ---
// Work items of transpose_block on a CPU: ceil(n / 512) x ceil(m / 96), in groups of 1 x 1
// Work items on a GPU: n x ceil(m / 4), in groups of 32 x 8
#include <sycl/sycl.hpp>

#include <utility>

#include "../../formats.hpp"

namespace syclexp = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
using Size = std::int64_t;

/// An integer of so many bytes, in which an element is moved.
template <Size bytes>
struct BitsOf;
template <>
struct BitsOf<1> {
  using Type = std::uint8_t;
};
template <>
struct BitsOf<2> {
  using Type = std::uint16_t;
};
template <>
struct BitsOf<4> {
  using Type = std::uint32_t;
};
template <>
struct BitsOf<8> {
  using Type = std::uint64_t;
};
template <typename T>
using Bits = typename BitsOf<sizeof(T)>::Type;

/// A row of a square. Two vectors of 16 bytes are interleaved in one instruction, and longer ones in few.
template <typename T>
using Vector = T __attribute__((ext_vector_type(sizeof(T) == 1 ? 16 : 8)));
/// A cache line. Of vectors with 16 elements it is known that the compiler streams them when asked to.
using Line = std::uint32_t __attribute__((ext_vector_type(16)));
/// The same, where they begin at any element. (No alias templates, since clang would forget their alignment.)
template <typename T>
struct __attribute__((packed)) LooseVector {
  Vector<T> v;
};
struct __attribute__((packed)) LooseLine {
  Line v;
};

/// Columns of c of a work item.
constexpr Size block_columns = 512;
/// Rows of a between what is read and what is prefetched.
constexpr Size ahead = 16;

/// A tile of c, which may have a line more than its columns.
template <typename T>
struct Tile {
  static constexpr Size lanes = sizeof(Vector<T>) / sizeof(T), line = sizeof(Line) / sizeof(T);
  static constexpr Size rows = 96, columns = 4 * line;
  /// Elements from a row to the next. A tile takes less than the 32 KiB of local memory that every device has.
  static constexpr Size stride = columns + line;
};

/// The elements of x and y in turn, from their elements `first` on.
template <Size first, typename V, Size... lane>
V interleaved(V x, V y, std::integer_sequence<Size, lane...>) {
  constexpr Size lanes = sizeof...(lane);
  return __builtin_shufflevector(x, y, (first + lane / 2 + lane % 2 * lanes)...);
}

/// Prefetches an element's line.
template <typename T>
void fetch(const T* from) {
  constexpr auto where = sycl::access::address_space::global_space;
  sycl::address_space_cast<where, sycl::access::decorated::yes>(from).prefetch(1);
}

/// Turns a square over. Each time that rows are interleaved with those half a square further down, twice as many
/// elements of a column are neighbours.
template <typename T>
[[clang::always_inline]] void turn(const T* a, T* to, Size m) {
  constexpr Size lanes = Tile<T>::lanes;
  Vector<T> x[lanes], y[lanes];
#pragma unroll
  for (Size r = 0; r < lanes; ++r) {
    fetch(a + (r + ahead) * m);
    x[r] = reinterpret_cast<const LooseVector<T>*>(a + r * m)->v;
  }
#pragma unroll
  for (Size together = 1; together < lanes; together *= 2) {
#pragma unroll
    for (Size r = 0; r < lanes / 2; ++r) {
      y[2 * r] = interleaved<0>(x[r], x[r + lanes / 2], std::make_integer_sequence<Size, lanes>());
      y[2 * r + 1] = interleaved<lanes / 2>(x[r], x[r + lanes / 2], std::make_integer_sequence<Size, lanes>());
    }
#pragma unroll
    for (Size r = 0; r < lanes; ++r) x[r] = y[r];
  }
#pragma unroll
  for (Size r = 0; r < lanes; ++r) reinterpret_cast<LooseVector<T>*>(to + r * Tile<T>::stride)->v = x[r];
}

// The compiler is to make no vectors of these loops: it would gather and scatter.

/// Copies `height` columns of a, from `width` of its rows, to rows of the tile.
template <typename T>
void read_tile(const T* a, T* tile, Size m, Size height, Size width) {
  constexpr Size lanes = Tile<T>::lanes, stride = Tile<T>::stride;
  const Size whole_height = height / lanes * lanes, whole_width = width / lanes * lanes;
#pragma clang loop vectorize(disable)
  for (Size j = 0; j < whole_width; j += lanes) {
#pragma clang loop vectorize(disable)
    for (Size i = 0; i < whole_height; i += lanes) turn(a + j * m + i, tile + i * stride + j, m);
  }
#pragma clang loop vectorize(disable)
  for (Size j = 0; j < width; ++j) {
#pragma clang loop vectorize(disable)
    for (Size i = j < whole_width ? whole_height : 0; i < height; ++i) tile[i * stride + j] = a[j * m + i];
  }
}

/// How many elements from c on come before the first that begins a line.
template <typename T>
Size before_line(const T* c) {
  return -reinterpret_cast<std::uintptr_t>(c) % sizeof(Line) / sizeof(T);
}

/// Copies elements `begin` to `end` of a row of the tile to c.
template <typename T>
void write_row(const T* tile, T* c, Size begin, Size end, bool streamed) {
  constexpr Size line = Tile<T>::line;
  Size j = begin;
  if (streamed) {
#pragma clang loop vectorize(disable)
    for (; j < end && before_line(c + j) != 0; ++j) c[j] = tile[j];
#pragma clang loop vectorize(disable)
    for (; j + line <= end; j += line) {
      const Line from = reinterpret_cast<const LooseLine*>(tile + j)->v;
      __builtin_nontemporal_store(from, reinterpret_cast<Line*>(c + j));
    }
  } else {
#pragma clang loop vectorize(disable)
    for (; j + line <= end; j += line) {
      reinterpret_cast<LooseLine*>(c + j)->v = reinterpret_cast<const LooseLine*>(tile + j)->v;
    }
  }
#pragma clang loop vectorize(disable)
  for (; j < end; ++j) c[j] = tile[j];
}

/// Moves the rows of c from i on, as many as a tile has, between two columns.
template <typename T>
void move_block(const T* a, T* c, Size m, Size n, Size i, Size first, Size last, T* tile) {
  const bool streamed = 2 * m * n * Size(sizeof(T)) > CACHE;
  const auto address = reinterpret_cast<std::uintptr_t>(c);
  const bool ragged = streamed && (address | n * sizeof(T)) % sizeof(Line) != 0;  // lines begin elsewhere in each row
  const Size height = sycl::min(Tile<T>::rows, m - i);
#pragma clang loop vectorize(disable)
  for (Size j = first; j < last; j += Tile<T>::columns) {
    const Size width = sycl::min(Tile<T>::columns, last - j);
    const Size more = ragged ? sycl::min(Tile<T>::line, n - j - width) : 0;  // of lines that begin in this tile
    read_tile(a + j * m + i, tile, m, height, width + more);
#pragma clang loop vectorize(disable)
    for (Size r = 0; r < height; ++r) {
      T* const to = c + (i + r) * n + j;
      const Size begin = ragged && j > 0 ? before_line(to) : 0;
      const Size end = ragged && j + width < n ? width + before_line(to + width) : width;
      write_row(tile + r * Tile<T>::stride, to, begin, sycl::min(end, width + more), streamed);
    }
  }
}

// A group has one work item. All the same, Intel's compiler makes code for several at once, of every vector so many. By
// itself it takes 16, and a minute to compile squares of bytes; 4 are the fewest.
template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<2>))
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::work_group_size<1, 1>))
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::sub_group_size<4>))
void transpose_block(const T* a, T* c, std::int64_t m, std::int64_t n) {
  static syclexp::work_group_static<Bits<T>[Tile<Bits<T>>::rows * Tile<Bits<T>>::stride]> memory;
  Bits<T>(&tile)[Tile<Bits<T>>::rows * Tile<Bits<T>>::stride] = memory;
  const auto item = get_nd_item<2>();
  const Size i = item.get_global_id(0) * Tile<Bits<T>>::rows, first = item.get_global_id(1) * block_columns;
  move_block(reinterpret_cast<const Bits<T>*>(a), reinterpret_cast<Bits<T>*>(c), m, n, i, first,
             sycl::min(n, first + block_columns), tile);
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<2>))
void transpose(const T* a, T* c, std::int64_t m, std::int64_t n) {
  constexpr Size side = 32, rows = 8;  // of a tile; between two elements of a work item
  static syclexp::work_group_static<T[side][side + 1]> memory;
  T(&tile)[side][side + 1] = memory;
  const auto item = get_nd_item<2>();
  const Size x = item.get_local_id(1), y = item.get_local_id(0);
  const Size j0 = item.get_group(1) * side, i0 = item.get_group(0) * side;
#pragma unroll
  for (Size r = 0; r < side; r += rows) {
    if (j0 + y + r < n && i0 + x < m) tile[y + r][x] = a[(j0 + y + r) * m + i0 + x];
  }
  sycl::group_barrier(item.get_group());
#pragma unroll
  for (Size r = 0; r < side; r += rows) {
    if (i0 + y + r < m && j0 + x < n) c[(i0 + y + r) * n + j0 + x] = tile[x][y + r];
  }
}
