// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Idea: none yet. This is lecture/cuda.cu with rows and columns exchanged, and the first version of many programs: x
//   comes first, so x is given the first index. Nothing is wrong but the order in which memory is read.
// Model: one thread of an NVIDIA GPU computes one element; the grid of threads covers c.
// Work items: m x n, in groups of 16 x 16
// Memory: neighbouring threads take neighbouring rows: they read elements of a that lie k apart, and write elements
//   of c that lie n apart. The GPU moves 32 bytes for each, and uses 4 or 8 of them at a time. lecture/cuda.cu has x
//   run along columns: neighbours share an element of a, and read neighbours of b together, which is called coalesced.
// Edges: threads past the last column or row do nothing. A grid has at most 65,535 blocks from top to bottom, which
//   here is along n: with more columns, each thread goes on in strides of the grid's height.
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
