// py-backends: sgemm(m, n, k, alpha=1, a, b, beta=0, c), grid ceil(n / 32) x ceil(m / 32), block 32 x 32
__global__ void sgemm(int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < M && column < N) {
    float sum = 0;
    for (int p = 0; p < K; ++p) sum += A[row * K + p] * B[p * N + column];
    C[row * N + column] = alpha * sum + beta * C[row * N + column];
  }
}
