// vecadd_streamed: c = a + b for vectors of n elements, `repetitions` times, with non-temporal stores.
// Model: full registers; each thread takes one chunk of the vectors, again and again.
// Memory: stores go past the caches, so that exactly three vectors move.
// Edges: elements before c is aligned, and the last ones of a chunk, are added one at a time.
#include "chunks.hpp"

template <typename T>
static void vecadd_streamed(const T* a, const T* b, T* c, std::int64_t n, std::int64_t repetitions) {
  write_in_chunks<T, true>(Sums<T>{a, b}, c, n, repetitions);
}
