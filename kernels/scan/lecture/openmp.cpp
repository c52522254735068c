// scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
// Model: one directive divides the loop, an iteration for each element, among threads that share memory. `inscan` says
//   that iterations use the sum of those before them. A second directive parts an iteration: above it an element goes
//   into the sum, and below it the sum is used. How threads get what comes before them is left to the compiler. clang
//   keeps n sums on the stack, which is too small for many, and fails for n < 2. There, two loops take its place.
// Memory: every thread reads and writes its own chunk of a and c, in order, and all sums a second time.
// Edges: none; OpenMP gives the threads chunks of almost equal length.
#ifdef __clang__
#include "../two_passes/openmp.cpp"
#else
#include <cstdint>

#include "../../formats.hpp"

template <typename T>
static void scan(const T* a, Sum<T>* c, std::int64_t n) {
  Sum<T> sum = 0;
#pragma omp parallel for reduction(inscan, + : sum)
  for (std::int64_t i = 0; i < n; ++i) {
    sum += widen(a[i]);
#pragma omp scan inclusive(sum)
    c[i] = sum;
  }
}
#endif
