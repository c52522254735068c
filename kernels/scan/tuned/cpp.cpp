// scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
// Idea: the compiler computes the sums of a vector register in log steps, and only one addition a register waits for
//   the one before. vector_loop.hpp has the loop.
// Model: C++ in one thread. The directives ask for vector instructions, and need no OpenMP library.
// Memory: reads a once and writes c once, in order.
// Edges: what is left after the last full register is added one element at a time, by the compiler.
#include "vector_loop.hpp"

template <typename T>
static void scan(const T* a, Sum<T>* c, std::int64_t n) {
  scan_from(Sum<T>(0), a, c, n);
}
