// vecadd: c[i] = a[i] + b[i] for vectors of n elements.
// Idea: the loop asks for vectors, prefetches, and adds elements of 16 bits in pairs. vector_loop.hpp has it.
// Model: C++ in one thread. The directive asks for vector instructions, and needs no OpenMP library.
// Memory: reads a and b once and writes c once, in order.
// Edges: the compiler adds what fills no register. The last element of an odd number has no pair.
#include "vector_loop.hpp"

template <typename T>
static void vecadd(const T* a, const T* b, T* c, std::int64_t n) {
  add(a, b, c, n);
}
