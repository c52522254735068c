// copy_streamed: c = a for vectors of n elements, `repetitions` times, with non-temporal stores.
// Model: full registers; each thread takes one chunk of the vectors, again and again.
// Memory: stores go past the caches, so that exactly two vectors move.
// Edges: elements before c is aligned, and the last ones of a chunk, are copied one at a time.
#include "chunks.hpp"

template <typename T>
static void copy_streamed(const T* a, T* c, std::int64_t n, std::int64_t repetitions) {
  write_in_chunks<T, true>(Copies<T>{a}, c, n, repetitions);
}
