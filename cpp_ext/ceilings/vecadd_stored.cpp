// vecadd_stored: c = a + b for vectors of n elements, `repetitions` times, with ordinary stores.
// Model: full registers; each thread takes one chunk of the vectors, again and again.
// Memory: every store first reads the cache line that it overwrites. So four vectors move, and three are counted.
// Edges: the last elements of a chunk are added one at a time.
#include "chunks.hpp"

template <typename T>
static void vecadd_stored(const T* a, const T* b, T* c, std::int64_t n, std::int64_t repetitions) {
  write_in_chunks<T, false>(Sums<T>{a, b}, c, n, repetitions);
}
