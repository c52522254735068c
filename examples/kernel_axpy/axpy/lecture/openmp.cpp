// axpy: z = alpha x + y for vectors of n elements, shared among threads.
#include <cstdint>
template <typename T>
static void axpy(const T* x, const T* y, T* z, std::int64_t n, T alpha) {
#pragma omp parallel for
  for (std::int64_t i = 0; i < n; ++i) z[i] = alpha * x[i] + y[i];
}
