// vecadd: c = a + b for vectors of n elements.
// Model: C++ in one thread; whether a loop becomes vector instructions is the compiler's choice.
// Memory: reads a and b once and writes c once, in order.
// Edges: none; the loop ends at n.
#include <cstdint>

template <typename T>
static void vecadd(const T* a, const T* b, T* c, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
