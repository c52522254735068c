// layer_norm: y[i, j] = (x[i, j] - mean of row i) r[i], r[i] = 1 / sqrt(variance of row i + epsilon).
// ---
// Work items: m, in groups of 64
template <typename T>
__global__ void layer_norm(const T* x, T* y, T* r, long long m, long long n, T epsilon) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= m) return;
  T mean = 0, square = 0;
  for (long long j = 0; j < n; ++j) mean += x[i * n + j];
  mean /= n;
  for (long long j = 0; j < n; ++j) square += (x[i * n + j] - mean) * (x[i * n + j] - mean);
  r[i] = 1 / sqrt(square / n + epsilon);
  for (long long j = 0; j < n; ++j) y[i * n + j] = (x[i * n + j] - mean) * r[i];
}
