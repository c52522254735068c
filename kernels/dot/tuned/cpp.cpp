// dot: c = the sum of a[i] b[i] for vectors of n elements.
// Idea: so many sums that the compiler fills several vector registers with them, and no addition waits for another.
//   vector_loop.hpp has the loop.
// Model: C++ in one thread. The directive asks for vector instructions, and needs no OpenMP library.
// Memory: reads a and b once, in order.
// Edges: what is left after the last full iteration is added to one sum after the other; an empty sum is 0.
#include "vector_loop.hpp"

template <typename T>
static void dot(const T* a, const T* b, Sum<T>* c, std::int64_t n) {
  c[0] = sum_of(a, b, n);
}
