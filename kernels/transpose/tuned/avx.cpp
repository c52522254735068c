// transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
// Idea: every line of c is written once, as a whole and past the cache. An ordinary store first reads the line that it
//   overwrites, a third of all traffic here. squares.hpp has the order, avx_moves.hpp the instructions.
// Model: squares whose rows fill a cache line are turned in registers. Threads take bands of rows, since one core alone
//   cannot fill the memory's bandwidth.
// Memory: a block of squares is turned in the second-level cache. What comes next of a is prefetched where that pays.
//   Rows of a block are whole lines of c, wherever these begin. Matrices that the last-level cache holds, or 96 MiB of
//   it, are moved from a to c directly, and stay in the cache, where the reader of c wants them.
// Edges: the last squares begin before their neighbours end. What is narrower than a square is moved element by element.
#include <cstdint>

#include "avx_moves.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

template <typename T>
static bool transpose(const T* a, T* c, std::int64_t m, std::int64_t n) {
  using Element = Moved<T>;
  const Matrices<Element> matrices(a, c, m, n);
  if (matrices.bytes() == 0) return true;
#if defined(_OPENMP)
  const Size threads = matrices.bytes() > few_to_share ? omp_get_max_threads() : 1;
#else
  const Size threads = 1;
#endif
  const bool buffered = through_buffer<Registers>(matrices);
  const Parts<Element> shares(m, n, threads, buffered ? Band<Registers, Element>::most_rows() : m);
  if (threads == 1 && shares.count() == 1) return move_part<Registers>(matrices, shares[0], buffered);
  bool enough_memory = true;
#pragma omp parallel for schedule(dynamic) reduction(&& : enough_memory)
  for (Size number = 0; number < shares.count(); ++number) {
    enough_memory = move_part<Registers>(matrices, shares[number], buffered) && enough_memory;
  }
  return enough_memory;
}
