// histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
// Idea: the places of 512 elements are found first, by vector instructions. Then elements are counted in four tables by
//   turns, and no update waits for the one before. tables.hpp has both.
// Model: C++ in one thread. The directive asks for vector instructions, and needs no OpenMP library.
// Memory: reads a once, in order. Tables and places are 6 KiB, and stay in the nearest cache.
// Edges: the last block is shorter. What lies outside of [0, 1), NaN too, has a place that is added to nothing.
#include "tables.hpp"

template <typename T>
static void histogram(const T* a, std::int32_t* c, std::int64_t n) {
  for (Size k = 0; k < bins; ++k) c[k] = 0;
  count(a, c, n);
}
