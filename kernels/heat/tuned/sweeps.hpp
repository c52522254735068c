// heat by sweeps, for cpp, openmp and avx: several steps of a part of the matrix in one pass over its rows.
//
// A sweep goes down the rows, four at a time. As soon as a step has the row below some, the next step computes these, and
// so on up to the last step. Of each step but the last, six rows are kept, in a core's caches. A part is computed by
// itself: around it, the steps before the last compute as many more rows and columns as there are steps to come.
#pragma once

#include <cstring>

#include "../../counting.hpp"
#include "../../workspace.hpp"

namespace {

inline Size greatest(Size x, Size y) { return x > y ? x : y; }

/// Steps of a sweep at most. More would pass memory less often, and compute more around parts twice.
constexpr Size most_steps = 16;

constexpr Size most_rows_of_part = 512;

/// Rows that are computed together: for four of them six are read, where for each alone it would be three.
constexpr Size rows_at_once = 4;

/// Rows that are kept of a step: those that the next one reads.
constexpr Size kept_rows = rows_at_once + 2;

/// Columns of a part: so many that the rows of all steps fit the second-level cache, beside those that come and go.
template <typename T>
Size columns_of_part() {
  constexpr Size line = 64 / sizeof(T), kept = (most_steps - 1) * kept_rows * Size(sizeof(T));
  return greatest(1, second_level_cache() / 4 * 3 / kept / line) * line;
}

/// Whether a second thread saves more than it costs: with so many elements, of the steps of one pass.
inline bool worth_sharing(Size m, Size n, Size steps) { return m * n * least(steps, most_steps) > Size(1) << 16; }

/// Rows and columns of a matrix, each from a first one to before a last one.
struct Part {
  Size top, bottom, left, right;
};

/// The m x n matrices of one pass, in parts of so many rows and columns.
template <typename T>
struct Pass {
  const T* before;
  T* after;
  Size m, n, steps, rows, columns;

  Size count() const { return parts(m, rows) * parts(n, columns); }
  Part part(Size number) const {
    const Size strips = parts(n, columns), top = number / strips * rows, left = number % strips * columns;
    return {top, least(m, top + rows), left, least(n, left + columns)};
  }
};

/// A sweep over one part. `Rows` says by which instructions a row of a step is computed.
template <typename Rows, typename T>
class Sweep {
 public:
  /// Elements of memory for the rows between the first step and the last.
  static Size elements_of_memory(const Pass<T>& pass) { return (pass.steps - 1) * kept_rows * apart(pass); }

  Sweep(const Pass<T>& of, const Part& over, T* with) : pass(of), part(over), memory(with) {}

  void run() {
    for (Size row = part.top - pass.steps + 1; row < part.bottom + pass.steps + rows_at_once - 2; row += rows_at_once) {
      for (Size step = 1; step <= pass.steps; ++step) compute_some(step, row - step + 1);
    }
  }

 private:
  /// Elements from a row that is kept to the next one.
  static Size apart(const Pass<T>& pass) { return pass.columns + 2 * most_steps; }

  /// Whether a row of a step is needed.
  bool needs(Size step, Size row) const {
    const Size more = pass.steps - step;
    return row >= greatest(0, part.top - more) && row < least(pass.m, part.bottom + more);
  }

  void compute_some(Size step, Size row) {
    const Size last = row + rows_at_once - 1;
    if (needs(step, row) && needs(step, last) && row > 0 && last < pass.m - 1) {
      compute<rows_at_once>(step, row);
    } else {
      for (Size each = row; each <= last; ++each) {
        if (needs(step, each)) compute<1>(step, each);
      }
    }
  }

  /// So many rows of a step. One alone may be of the boundary.
  template <Size rows>
  void compute(Size step, Size row) {
    const Size more = pass.steps - step;
    const Size first = greatest(0, part.left - more), last = least(pass.n, part.right + more);
    if (row == 0 || row == pass.m - 1) {
      std::memcpy(element(step, row, first), element(step - 1, row, first), (last - first) * sizeof(T));
      return;
    }
    const Size left = first == 0, right = last == pass.n;  // columns of the boundary
    const T* before[rows + 2];
    T* after[rows];
    for (Size r = 0; r < rows + 2; ++r) before[r] = element(step - 1, row - 1 + r, first);
    for (Size r = 0; r < rows; ++r) {
      after[r] = element(step, row + r, first);
      if (left) after[r][0] = before[r + 1][0];
      if (right) after[r][last - first - 1] = before[r + 1][last - first - 1];
    }
    Rows::compute(before, after, left, last - first - right);
  }

  /// Where an element lies after a step. Before the first step it is that of the matrix.
  T* element(Size step, Size row, Size column) const {
    if (step == 0) return const_cast<T*>(pass.before) + row * pass.n + column;
    if (step == pass.steps) return pass.after + row * pass.n + column;
    return memory + ((step - 1) * kept_rows + row % kept_rows) * apart(pass) + most_steps + column - part.left;
  }

  const Pass<T> pass;
  const Part part;
  T* const memory;
};

thread_local Workspace workspace;

/// Sweeps over a part, and returns whether there was enough memory for that.
template <typename Rows, typename T>
bool sweep(const Pass<T>& pass, const Part& part) {
  T* const memory = workspace.hold<T>(Sweep<Rows, T>::elements_of_memory(pass));
  if (memory != nullptr) Sweep<Rows, T>(pass, part, memory).run();
  return memory != nullptr;
}

/// All passes, each carried out by `run`, which returns whether there was enough memory. They read one matrix and write
/// another one by turns, so that the last one writes to c. Each thread has as many parts.
template <typename T, typename Run>
bool passes(const T* u, T* c, Size m, Size n, Size steps, Size threads, Run run) {
  if (m < 3 || n < 3) steps = 0;  // without an interior nothing changes
  if (steps == 0) std::memcpy(c, u, m * n * sizeof(T));
  const Size count = parts(steps, most_steps);
  const Size bands = greatest(1, parts(m, most_rows_of_part * threads) * threads);
  const Size rows = greatest(1, parts(m, bands)), columns = columns_of_part<T>();
  Workspace memory;
  T* const other = count > 1 ? memory.hold<T>(m * n) : c;
  if (other == nullptr) return false;
  for (Size pass = 0; pass < count; ++pass) {
    T* const after = (count - pass) % 2 == 0 ? other : c;
    const Size of_pass = steps * (pass + 1) / count - steps * pass / count;
    if (!run(Pass<T>{u, after, m, n, of_pass, rows, columns})) return false;
    u = after;
  }
  return true;
}

}  // namespace
