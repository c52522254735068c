// dot: c = the sum of a[i] b[i] for vectors of n elements.
// Model: one directive divides the loop, an iteration for each product, among threads that share memory. With
//   `reduction`, every thread has a sum of its own, which starts at 0. In the end all are added up, in any order.
// Memory: every thread reads its own chunk of a and b, in order.
// Edges: none; OpenMP gives the threads chunks of almost equal length, and an empty sum is 0.
// ---
// Order: any, as threads end. So two calls on more than two threads may differ in their last bits.
#include <cstdint>

#include "../../formats.hpp"

template <typename T>
static void dot(const T* a, const T* b, Sum<T>* c, std::int64_t n) {
  Sum<T> sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += widen(a[i]) * widen(b[i]);
  c[0] = sum;
}
