// spmv: y = A x, for a sparse matrix A of m x n in CSR: its values, the column of each, and where each row begins.
// ---
// Work items: m, in groups of 64
template <typename T>
__global__ void spmv(const T* values, const int* columns, const int* begins, const T* x, T* y, long long m,
                     long long nonzeros, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= m) return;
  T sum = 0;
  for (int at = begins[i]; at < begins[i + 1]; ++at) sum += values[at] * x[columns[at]];
  y[i] = sum;
}
