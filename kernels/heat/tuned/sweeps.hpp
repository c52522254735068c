// heat by sweeps, for cpp, openmp and avx: several steps of a part of the matrix in one pass over its rows.
//
// A sweep goes down the rows. As soon as a step has computed three rows, the next step computes the middle one, and so
// on up to the last step. Of each step but the last, three rows are kept, in a core's caches. A part is computed by
// itself: around it, the steps before the last compute as many more rows and columns as there are steps to come.
#pragma once

#include <cstring>
#include <utility>

#include "../../counting.hpp"
#include "../../workspace.hpp"

namespace {

/// Steps of a sweep at most. More would pass memory less often, and compute more around parts twice.
constexpr Size most_steps = 16;

/// Columns of a part: so many that the rows of all steps fit the second-level cache.
template <typename T>
constexpr Size columns_of_part = 4096 / Size(sizeof(T));

constexpr Size rows_of_part = 256;

/// Elements of all steps of a pass up to which a second thread costs more than it saves.
constexpr Size few_to_share = Size(1) << 16;

inline Size greatest(Size x, Size y) { return x > y ? x : y; }

/// Rows and columns of a matrix, each from a first one to before a last one.
struct Part {
  Size top, bottom, left, right;
};

/// The m x n matrices of one pass.
template <typename T>
struct Pass {
  const T* before;
  T* after;
  Size m, n, steps;

  /// Whether a second thread saves more than it costs.
  bool worth_sharing() const { return m * n * steps > few_to_share; }

  Size count() const { return parts(m, rows_of_part) * parts(n, columns_of_part<T>); }
  Part part(Size number) const {
    const Size strips = parts(n, columns_of_part<T>);
    const Size top = number / strips * rows_of_part, left = number % strips * columns_of_part<T>;
    return {top, least(m, top + rows_of_part), left, least(n, left + columns_of_part<T>)};
  }
};

/// A sweep over one part. `Rows` says by which instructions a row of a step is computed.
template <typename Rows, typename T>
class Sweep {
 public:
  /// Elements of memory for the rows between the first step and the last.
  static constexpr Size elements_of_memory(Size steps) { return (steps - 1) * kept * apart; }

  Sweep(const Pass<T>& of, const Part& over, T* with) : pass(of), part(over), memory(with) {}

  void run() {
    for (Size row = part.top - pass.steps + 1; row < part.bottom + pass.steps - 1; ++row) {
      for (Size step = 1; step <= pass.steps; ++step) compute(step, row - step + 1);
    }
  }

 private:
  static constexpr Size kept = 3, apart = columns_of_part<T> + 2 * most_steps;

  void compute(Size step, Size row) {
    const Size more = pass.steps - step;
    if (row < greatest(0, part.top - more) || row >= least(pass.m, part.bottom + more)) return;
    const Size first = greatest(0, part.left - more), last = least(pass.n, part.right + more);
    const T* const before = element(step - 1, row, first);
    T* const after = element(step, row, first);
    if (row == 0 || row == pass.m - 1) {
      std::memcpy(after, before, (last - first) * sizeof(T));
      return;
    }
    const Size left = first == 0, right = last == pass.n;  // columns of the boundary
    if (left) after[0] = before[0];
    if (right) after[last - first - 1] = before[last - first - 1];
    Rows::compute(element(step - 1, row - 1, first) + left, before + left, element(step - 1, row + 1, first) + left,
                  after + left, greatest(0, last - first - left - right));
  }

  /// Where an element lies after a step. Before the first step it is that of the matrix.
  T* element(Size step, Size row, Size column) const {
    if (step == 0) return const_cast<T*>(pass.before) + row * pass.n + column;
    if (step == pass.steps) return pass.after + row * pass.n + column;
    return memory + ((step - 1) * kept + row % kept) * apart + most_steps + column - part.left;
  }

  const Pass<T> pass;
  const Part part;
  T* const memory;
};

thread_local Workspace workspace;

/// Sweeps over a part, and returns whether there was enough memory for that.
template <typename Rows, typename T>
bool sweep(const Pass<T>& pass, const Part& part) {
  T* const memory = workspace.hold<T>(Sweep<Rows, T>::elements_of_memory(pass.steps));
  if (memory != nullptr) Sweep<Rows, T>(pass, part, memory).run();
  return memory != nullptr;
}

/// All passes, each carried out by `run`, which returns whether there was enough memory. They read one matrix and write
/// another one by turns, so that the last one writes to c.
template <typename T, typename Run>
bool passes(const T* u, T* c, Size m, Size n, Size steps, Run run) {
  if (steps == 0) std::memcpy(c, u, m * n * sizeof(T));
  const Size count = parts(steps, most_steps);
  Workspace memory;
  T* const other = count > 1 ? memory.hold<T>(m * n) : c;
  if (other == nullptr) return false;
  for (Size pass = 0; pass < count; ++pass) {
    T* const after = (count - pass) % 2 == 0 ? other : c;
    const Size of_pass = steps * (pass + 1) / count - steps * pass / count;
    if (!run(Pass<T>{u, after, m, n, of_pass})) return false;
    u = after;
  }
  return true;
}

}  // namespace
