// layer_norm: y[i, j] = (x[i, j] - mean of row i) r[i], r[i] = 1 / sqrt(variance of row i + epsilon).
// ---
// Work items: m, in groups of 64
kernel void layer_norm(global const T* x, global T* y, global T* r, long m, long n, Sum epsilon) {
  const long i = get_global_id(0);
  if (i >= m) return;
  T mean = 0, square = 0;
  for (long j = 0; j < n; ++j) mean += x[i * n + j];
  mean /= n;
  for (long j = 0; j < n; ++j) square += (x[i * n + j] - mean) * (x[i * n + j] - mean);
  r[i] = 1 / sqrt(square / n + epsilon);
  for (long j = 0; j < n; ++j) y[i * n + j] = (x[i * n + j] - mean) * r[i];
}
