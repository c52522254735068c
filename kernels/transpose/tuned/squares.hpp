// Transposing square by square, for cpp, openmp and avx. `Moves` says by which instructions.
#pragma once

#include <cstring>

#include "../../formats.hpp"
#include "../../workspace.hpp"

namespace {

constexpr Size line = 64;  ///< bytes of a cache line

/// Rows and columns of a square: so many that its rows fill a cache line.
template <typename T>
constexpr Size side = line / Size(sizeof(T));

/// What elements are while they are moved: numbers of as many bits, of a type that the language has.
template <typename T>
struct MovedAs {
  using Type = T;
};
template <>
struct MovedAs<Float16> {
  using Type = std::uint16_t;
};
template <>
struct MovedAs<BFloat16> {
  using Type = std::uint16_t;
};
template <typename T>
using Moved = typename MovedAs<T>::Type;

/// Rows of c from i on, and columns from j on.
struct Part {
  Size i, j, rows, columns;
};

/// The matrices: c[i, j] = a[j, i], where c is m x n.
template <typename T>
struct Matrices {
  const T* a;
  T* c;
  Size m, n;

  Matrices(const void* a, void* c, Size m, Size n) : a(static_cast<const T*>(a)), c(static_cast<T*>(c)), m(m), n(n) {}

  Size bytes() const { return 2 * m * n * Size(sizeof(T)); }
  const T* from(Size i, Size j) const { return a + j * m + i; }
  T* to(Size i, Size j) const { return c + i * n + j; }
};

template <typename T>
void move_elements(const Matrices<T>& matrices, const Part& part) {
  for (Size i = part.i; i < part.i + part.rows; ++i) {
    for (Size j = part.j; j < part.j + part.columns; ++j) *matrices.to(i, j) = *matrices.from(i, j);
  }
}

/// Moves squares from a to c. The last ones may begin before their neighbours end, and write the same elements again.
template <typename Moves, typename T>
void move_squares(const Matrices<T>& matrices, const Part& part) {
  if (least(part.rows, part.columns) < side<T>) return move_elements(matrices, part);
  for (Size x = 0; x < part.rows; x += side<T>) {
    const Size i = part.i + least(x, part.rows - side<T>);
    for (Size y = 0; y < part.columns; y += side<T>) {
      const Size j = part.j + least(y, part.columns - side<T>);
      Moves::turn(matrices.from(i, j), matrices.m, matrices.to(i, j), matrices.n);
    }
  }
}

/// How c is divided among threads: into parts of whole lines, as many for each thread. Where rows are too few, columns
/// are divided.
template <typename T>
struct Parts {
  Size m, n, rows, columns;

  Parts(Size m, Size n, Size threads, Size most_rows) : m(m), n(n) {
    const Size bands = parts(parts(m, most_rows), threads) * threads;
    rows = parts(parts(m, bands), side<T>) * side<T>;
    const Size strips = parts(m, rows) < threads ? threads : 1;
    columns = parts(parts(n, strips), side<T>) * side<T>;
  }

  Size count() const { return parts(m, rows) * parts(n, columns); }
  Part operator[](Size number) const {
    const Size i = number / parts(n, columns) * rows, j = number % parts(n, columns) * columns;
    return {i, j, least(rows, m - i), least(columns, n - j)};
  }
};

/// Bytes below which a second thread costs more than it saves.
constexpr Size few_to_share = Size(1) << 20;

/// Whether to move blocks through a buffer. It pays beyond the second-level cache where elements of a column are whole
/// pages apart, since they take each other's places in the caches. Lines that go past the cache come from a buffer.
template <typename Moves, typename T>
bool through_buffer(const Matrices<T>& matrices) {
  constexpr Size page = 4096 / sizeof(T);
  const bool colliding = matrices.m % page == 0 || matrices.n % page == 0;
  if (colliding) return matrices.bytes() > 4 * second_level_cache();
  return Moves::past_the_cache && matrices.bytes() > effective_cache();
}

/// Moves a part block by block. A block is turned in a buffer, from which the rows of the block before it go to c a few
/// at a time: so a is read and c is written at the same rate. A row of a block is some whole lines of c. Those begin
/// at other columns in every row, so that a buffer has a line more than a block, in which the block before it ends.
template <typename Moves, typename T>
class Band {
 public:
  static constexpr Size columns = 4 * side<T>, apart = columns + side<T>;

  /// Rows that are moved together: each is as wide a piece of a's rows as memory is quick to read. The buffers of more
  /// rows would not fit the second-level cache. Where nothing is prefetched here, wider pieces are quicker, as far as
  /// their buffers take a third of that cache.
  static Size most_rows() {
    if (Moves::prefetches()) return (sizeof(T) == 1 ? 8 : 16) * side<T>;
    const Size rows = second_level_cache() / 3 / (elements_of_memory(1) * Size(sizeof(T)));
    return rows < side<T> ? side<T> : rows / side<T> * side<T>;
  }

  static constexpr Size elements_of_memory(Size rows) { return 2 * rows * apart; }

  Band(const Matrices<T>& all, const Part& its_part, T* memory)
      : matrices(all), part(its_part), block(memory + side<T>), before(block + part.rows * apart) {}

  void move() {
    if (least(part.rows, part.columns) < side<T>) return move_elements(matrices, part);
    const bool prefetches = Moves::prefetches();
    Size width_before = 0;
    for (Size j = 0; j < part.columns; j += columns) {
      const Size width = least(columns, part.columns - j);
      const Size share = parts(part.rows, parts(width, side<T>) * parts(part.rows, side<T>));
      Size row = 0;
      for (Size next = 0; next < width; next += side<T>) {
        const Size y = least(next, width - side<T>);  // which may lie in the block before
        for (Size x = 0; x < part.rows; x += side<T>) {
          if (prefetches) prefetch(x, j + y);
          turn(least(x, part.rows - side<T>), j + y, y);
          for (const Size end = least(row + share, part.rows); row < end && j > 0; ++row) {
            put_row(row, j - columns, columns);
          }
        }
      }
      T* const turned = block;
      block = before;
      before = turned;
      width_before = width;
    }
    for (Size row = 0; row < part.rows; ++row) {
      put_row(row, part.columns - width_before, width_before);
      put_rest(row);
    }
    Moves::finish();
  }

 private:
  /// Turns the square of row `row` and column j into the block, where its columns begin at y.
  void turn(Size row, Size j, Size y) {
    T copy[side<T> * side<T>];
    for (Size r = 0; r < side<T>; ++r) {
      // In powers of two rows take each other's places in the first-level cache before all of a line is used.
      std::memcpy(copy + r * side<T>, matrices.from(part.i + row, part.j + j + r), line);
    }
    Moves::turn(copy, side<T>, block + row * apart + y, apart);
  }

  /// Prefetches pieces of rows of a: for each square in a row of squares its share, so that together they prefetch what
  /// comes so many rows later. Memory is quickest to read in the order of rows. (g++ 12 leaves out calls of functions
  /// that only prefetch.)
  __attribute__((always_inline)) void prefetch(Size row, Size j) {
    constexpr Size ahead = side<T> < 16 ? 16 : side<T>;
    const Size end = side<T> * least(row + side<T>, part.rows) / part.rows;
    for (Size r = side<T> * row / part.rows; r < end; ++r) {
      const T* const from = matrices.from(part.i, part.j + j + ahead + r);
      for (Size i = 0; i < part.rows; i += side<T>) __builtin_prefetch(from + i);
    }
  }

  /// Elements from the last border of a line to an address.
  static Size since_border(const T* to) { return Size(reinterpret_cast<std::uintptr_t>(to) % line / sizeof(T)); }

  /// Writes the lines of a row that end in the block before. The last line's worth of elements goes before those of
  /// this block.
  void put_row(Size row, Size j, Size width) {
    T* const to = matrices.to(part.i + row, part.j + j);
    const T* const from = before + row * apart;
    Size at = -since_border(to);
    if (j == 0 && at < 0) {
      at += side<T>;
      std::memcpy(to, from, at * sizeof(T));
    }
    for (; at + side<T> <= width; at += side<T>) {
      constexpr Size rows_ahead = 6;  // an ordinary store waits for the line that it overwrites
      if (!Moves::past_the_cache) __builtin_prefetch(to + at + rows_ahead * matrices.n, 1);
      Moves::put_line(to + at, from + at);
    }
    std::memcpy(block + row * apart - side<T>, from + width - side<T>, line);
  }

  /// Writes what no full line is left for at the end of a row.
  void put_rest(Size row) {
    T* const end = matrices.to(part.i + row, part.j + part.columns);
    const Size rest = since_border(end);
    std::memcpy(end - rest, block + row * apart - rest, rest * sizeof(T));
  }

  const Matrices<T>& matrices;
  const Part part;
  T *block, *before;
};

thread_local Workspace workspace;

/// Moves a part, and returns whether there was enough memory for that.
template <typename Moves, typename T>
bool move_part(const Matrices<T>& matrices, const Part& part, bool buffered) {
  using Buffered = Band<Moves, T>;
  if (!buffered) {
    move_squares<Moves>(matrices, part);
    return true;
  }
  T* const memory = workspace.hold<T>(Buffered::elements_of_memory(part.rows));
  if (memory != nullptr) Buffered(matrices, part, memory).move();
  return memory != nullptr;
}

}  // namespace
