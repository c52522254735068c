// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Idea: a thread computes 8 elements of one column of c. What it reads of b it multiplies 8 times, from a register,
//   and 8 sums that do not wait for one another hide the latency of each.
// Model: a block of 32 x 4 threads computes a tile of c of 32 x 32, from one pair of tiles after the other.
// Memory: each thread copies 8 elements of a and of b to shared memory; every element is multiplied 32 times there. 8
//   products take one read of b and 8 of a, which all threads of a warp make at the same address.
// Edges: every thread goes to every barrier, so none returns early. Beyond the ends tiles hold zeros, which add
//   nothing, and sums are not written. Where the grid would be too high, blocks go on in strides of its height.
// ---
// Work items: n x ceil(m / 8), in groups of 32 x 4
// Formats: float32, float64

namespace {

constexpr int side = 32;                     // of the tiles
constexpr int sums = 8, step = side / sums;  // of a thread, and the rows from one to the next: the block's height

}  // namespace

template <typename T>
__global__ void matmul(const T* a, const T* b, T* c, long long m, long long n, long long k) {
  __shared__ T tile_of_a[side][side], tile_of_b[side][side];
  const int row = threadIdx.y, column = threadIdx.x;
  const long long j = (long long)blockIdx.x * side + column;
  for (long long top = (long long)blockIdx.y * side; top < m; top += (long long)gridDim.y * side) {
    const long long i = top + row;
    T sum[sums] = {};
    for (long long p = 0; p < k; p += side) {
      for (int r = 0; r < side; r += step) {
        tile_of_a[row + r][column] = i + r < m && p + column < k ? a[(i + r) * k + p + column] : T(0);
        tile_of_b[row + r][column] = p + row + r < k && j < n ? b[(p + row + r) * n + j] : T(0);
      }
      __syncthreads();  // both tiles are complete
      for (int q = 0; q < side; ++q) {
        const T of_b = tile_of_b[q][column];
        for (int s = 0; s < sums; ++s) sum[s] += tile_of_a[row + s * step][q] * of_b;
      }
      __syncthreads();  // nobody reads them any more
    }
    for (int s = 0; s < sums; ++s) {
      if (i + s * step < m && j < n) c[(i + s * step) * n + j] = sum[s];
    }
  }
}
