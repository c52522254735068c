// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Idea: none yet. This is lecture/cuda.cu with rows and columns exchanged. Many first programs are like this: x comes
//   first, so the first index gets it. Only the order of the reads is wrong.
// Model: one thread of an NVIDIA GPU computes one element; the grid of threads covers c.
// Memory: neighbouring threads take neighbouring rows. They read elements of a that lie k apart, and write elements of
//   c that lie n apart. For each, the GPU moves 32 bytes, and uses 4 or 8 of them. In lecture/cuda.cu, x runs along
//   columns. There, neighbours share an element of a, and read neighbours of b together: the reads are coalesced.
// Edges: threads past the last column or row do nothing. A grid has at most 65,535 blocks from top to bottom, here
//   along n. With more columns, each thread also computes columns further on, one grid height apart.
// ---
// Work items: m x n, in groups of 16 x 16
// Formats: float32, float64

template <typename T>
__global__ void matmul(const T* a, const T* b, T* c, long long m, long long n, long long k) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const long long first = (long long)blockIdx.y * blockDim.y + threadIdx.y;
  const long long columns = (long long)gridDim.y * blockDim.y;
  for (long long j = first; i < m && j < n; j += columns) {
    T sum = 0;
    for (long long p = 0; p < k; ++p) sum += a[i * k + p] * b[p * n + j];
    c[i * n + j] = sum;
  }
}
