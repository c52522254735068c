// transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
// Idea: squares whose rows fill a cache line are turned by vector instructions (loops.hpp), in an order that moves whole
//   lines (squares.hpp).
// Model: one directive divides the rows of c among threads, and another one a row of a square among the lanes of
//   registers. Small matrices stay on one thread, since waking others takes longer.
// Memory: a block of squares is turned in the second-level cache, while what comes next of a is prefetched. Its rows
//   are whole lines of c, wherever these begin. Matrices that the caches hold are moved from a to c directly. An
//   ordinary store first reads the line that it overwrites, a third of all traffic here.
// Edges: the last squares begin before their neighbours end. What is narrower than a square is moved element by element.
#include <omp.h>

#include "loops.hpp"

template <typename T>
static bool transpose(const T* a, T* c, std::int64_t m, std::int64_t n) {
  using Element = Moved<T>;
  const Matrices<Element> matrices(a, c, m, n);
  if (matrices.bytes() == 0) return true;
  const Size threads = matrices.bytes() > few_to_share ? omp_get_max_threads() : 1;
  const bool buffered = through_buffer<Loops>(matrices);
  const Parts<Element> shares(m, n, threads, buffered ? Band<Loops, Element>::most_rows() : m);
  bool enough_memory = true;
#pragma omp parallel for schedule(dynamic) reduction(&& : enough_memory) if (threads > 1)
  for (Size number = 0; number < shares.count(); ++number) {
    enough_memory = move_part<Loops>(matrices, shares[number], buffered) && enough_memory;
  }
  return enough_memory;
}
