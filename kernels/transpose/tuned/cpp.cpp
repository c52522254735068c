// transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
// Idea: squares whose rows fill a cache line are turned by vector instructions (loops.hpp), in an order that moves whole
//   lines (squares.hpp).
// Model: C++ in one thread. The directive `simd` makes vector instructions of a row of a square, and needs no OpenMP
//   library.
// Memory: a block of squares is turned in the second-level cache, while what comes next of a is prefetched. Its rows
//   are whole lines of c, wherever these begin. Matrices that the caches hold are moved from a to c directly.
// Edges: the last squares begin before their neighbours end. What is narrower than a square is moved element by element.
#include "loops.hpp"

template <typename T>
static bool transpose(const T* a, T* c, std::int64_t m, std::int64_t n) {
  using Element = Moved<T>;
  const Matrices<Element> matrices(a, c, m, n);
  if (matrices.bytes() == 0) return true;
  const bool buffered = through_buffer<Loops>(matrices);
  const Parts<Element> bands(m, n, 1, buffered ? Band<Loops, Element>::most_rows() : m);
  for (Size number = 0; number < bands.count(); ++number) {
    if (!move_part<Loops>(matrices, bands[number], buffered)) return false;
  }
  return true;
}
