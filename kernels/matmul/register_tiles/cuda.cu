// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Idea: a thread computes 8 x 8 elements of c. What it reads of a and of b it multiplies 8 times, from registers.
// Model: a block of 128 threads, as 16 x 8, computes a tile of c of 128 x 64, from slices of a and b 8 products deep.
//   The sums of a thread are 16 rows and 8 columns apart.
// Memory: each thread copies 8 elements of a and 4 of b to shared memory, where they are multiplied 64 and 128 times.
//   The threads of a warp read 4 rows of a there, which lie in different banks, and 8 neighbours of b.
// Edges: every thread goes to every barrier, so none returns early. Beyond the ends slices hold zeros, which add
//   nothing, and sums are not written. Where the grid would be too high, blocks go on in strides of its height.
// ---
// Work items: ceil(n / 2) x ceil(m / 32), in groups of 32 x 4
// Formats: float32, float64

namespace {

using Size = long long;
constexpr int threads_down = 16, threads_across = 8, threads = threads_down * threads_across;
constexpr int down = 8, across = 8, rows = threads_down * down, columns = threads_across * across;  // sums; a tile
constexpr int depth = 8;  // columns of a and rows of b in one slice: products between two barriers

template <typename T>
struct Slice {
  T a[rows][depth], b[depth][columns];
};

/// Copies the slice that begins at p, for the tile of c that begins at row i and column j.
template <typename T>
__device__ void copy(Slice<T>& to, int thread, const T* a, const T* b, Size i, Size j, Size p, Size m, Size n, Size k) {
  for (int e = thread; e < rows * depth; e += threads) {
    const int r = e / depth, q = e % depth;
    to.a[r][q] = i + r < m && p + q < k ? a[(i + r) * k + p + q] : T(0);
  }
  for (int e = thread; e < depth * columns; e += threads) {
    const int q = e / columns, s = e % columns;
    to.b[q][s] = p + q < k && j + s < n ? b[(p + q) * n + j + s] : T(0);
  }
}

/// Adds the products of a slice to the sums of the thread in that row and column of the block.
template <typename T>
__device__ void multiply(const Slice<T>& slice, int row, int column, T (&sum)[down][across]) {
#pragma unroll
  for (int q = 0; q < depth; ++q) {
    T of_b[across];
    for (int s = 0; s < across; ++s) of_b[s] = slice.b[q][column + s * threads_across];
    for (int r = 0; r < down; ++r) {
      const T of_a = slice.a[row + r * threads_down][q];
      for (int s = 0; s < across; ++s) sum[r][s] += of_a * of_b[s];
    }
  }
}

}  // namespace

template <typename T>
__global__ void __launch_bounds__(threads) matmul(const T* a, const T* b, T* c, long long m, long long n, long long k) {
  __shared__ Slice<T> slice;
  const int thread = 32 * threadIdx.y + threadIdx.x, row = thread / threads_across, column = thread % threads_across;
  const Size j = (long long)blockIdx.x * columns;
  for (Size i = (long long)blockIdx.y * rows; i < m; i += (long long)gridDim.y * rows) {
    T sum[down][across] = {};
    for (Size p = 0; p < k; p += depth) {
      copy(slice, thread, a, b, i, j, p, m, n, k);
      __syncthreads();  // the slice is complete
      multiply(slice, row, column, sum);
      __syncthreads();  // nobody reads it any more
    }
    for (int r = 0; r < down; ++r) {
      for (int s = 0; s < across; ++s) {
        const Size to_row = i + row + r * threads_down, to_column = j + column + s * threads_across;
        if (to_row < m && to_column < n) c[to_row * n + to_column] = sum[r][s];
      }
    }
  }
}
