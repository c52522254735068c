// spmv: y = A x, for a sparse matrix A of m x n in CSR: its values, the column of each, and where each row begins.
#include <cstdint>

template <typename T>
static void spmv(const T* values, const std::int32_t* columns, const std::int32_t* begins, const T* x, T* y,
                 std::int64_t m, std::int64_t nonzeros, std::int64_t n) {
#pragma omp parallel for
  for (std::int64_t i = 0; i < m; ++i) {
    T sum = 0;
    for (std::int32_t at = begins[i]; at < begins[i + 1]; ++at) sum += values[at] * x[columns[at]];
    y[i] = sum;
  }
}
