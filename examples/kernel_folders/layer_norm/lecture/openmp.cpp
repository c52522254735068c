// layer_norm: y[i, j] = (x[i, j] - mean of row i) r[i], r[i] = 1 / sqrt(variance of row i + epsilon).
#include <cmath>
#include <cstdint>

template <typename T>
static void layer_norm(const T* x, T* y, T* r, std::int64_t m, std::int64_t n, T epsilon) {
#pragma omp parallel for
  for (std::int64_t i = 0; i < m; ++i) {
    T mean = 0, square = 0;
    for (std::int64_t j = 0; j < n; ++j) mean += x[i * n + j];
    mean /= T(n);
    for (std::int64_t j = 0; j < n; ++j) {
      y[i * n + j] = x[i * n + j] - mean;
      square += y[i * n + j] * y[i * n + j];
    }
    r[i] = 1 / std::sqrt(square / T(n) + epsilon);
    for (std::int64_t j = 0; j < n; ++j) y[i * n + j] *= r[i];
  }
}
