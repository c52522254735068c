// copy_stored: c = a for vectors of n elements, `repetitions` times, with ordinary stores.
// Model: full registers; each thread takes one chunk of the vectors, again and again.
// Memory: every store first reads the cache line that it overwrites. So three vectors move, and two are counted.
// Edges: the last elements of a chunk are copied one at a time.
#include "chunks.hpp"

template <typename T>
static void copy_stored(const T* a, T* c, std::int64_t n, std::int64_t repetitions) {
  write_in_chunks<T, false>(Copies<T>{a}, c, n, repetitions);
}
