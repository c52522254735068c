// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Idea: the threads of a block need the same rows of a and columns of b. They fetch a tile of each together, into
//   memory that they share, and every element fetched is multiplied 16 times.
// Model: a block of 16 x 16 threads computes a tile of c, one element a thread, from one pair of tiles after the
//   other.
// Memory: each thread copies one element of a and one of b to shared memory, its neighbour in x the next one. A
//   product takes two reads of shared memory. Barriers part those who write a tile from those who read it.
// Edges: every thread goes to every barrier, so none returns early. Beyond the ends tiles hold zeros, which add
//   nothing, and sums are not written. Where the grid would be too high, blocks go on in strides of its height.
// ---
// Work items: n x m, in groups of 16 x 16
// Formats: float32, float64

namespace {

constexpr int side = 16;  // of the tiles, and of the block

}  // namespace

template <typename T>
__global__ void matmul(const T* a, const T* b, T* c, long long m, long long n, long long k) {
  __shared__ T tile_of_a[side][side], tile_of_b[side][side];
  const int row = threadIdx.y, column = threadIdx.x;
  const long long j = (long long)blockIdx.x * side + column;
  for (long long top = (long long)blockIdx.y * side; top < m; top += (long long)gridDim.y * side) {
    const long long i = top + row;
    T sum = 0;
    for (long long p = 0; p < k; p += side) {
      tile_of_a[row][column] = i < m && p + column < k ? a[i * k + p + column] : T(0);
      tile_of_b[row][column] = p + row < k && j < n ? b[(p + row) * n + j] : T(0);
      __syncthreads();  // both tiles are complete
      for (int q = 0; q < side; ++q) sum += tile_of_a[row][q] * tile_of_b[q][column];
      __syncthreads();  // nobody reads them any more
    }
    if (i < m && j < n) c[i * n + j] = sum;
  }
}
