// vecadd: c[i] = a[i] + b[i] for vectors of n elements.
// Idea: `simd` tells the compiler that vectors may be the same, but never shifted. So it checks nothing, and is as
//   quick where c is a or b.
// Model: C++ in one thread. The directive asks for vector instructions, and needs no OpenMP library.
// Memory: reads a and b once and writes c once, in order.
// Edges: none; the compiler adds what fills no register.
#include <cstdint>

#include "../../formats.hpp"

template <typename T>
static void vecadd(const T* a, const T* b, T* c, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) c[i] = narrow<T>(widen(a[i]) + widen(b[i]));
}
