// heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
// Idea: a block reads each element once, into memory that its threads share. There they find their neighbours.
// Model: a block of 32 x 8 threads computes a tile of 32 x 32 elements of one step, four a thread.
// Memory: the tile in shared memory has a row and a column more on each side. Of all that a block reads, a ninth
//   belongs to neighbouring tiles.
// Edges: every thread goes to every barrier, so none returns early. Elements beyond the ends are neither read nor
//   written. Where the grid would be too high, blocks go on in strides of its height.
// ---
// Work items: n x ceil(m / 4), in groups of 32 x 8
// Repeat: steps

namespace {

constexpr int side = 32, step = 8;  // of the tile; rows between two elements of a thread, which is the block's height

}  // namespace

template <typename T>
__global__ void __launch_bounds__(side* step) heat(const T* u, T* c, long long m, long long n, long long steps) {
  __shared__ T tile[side + 2][side + 2];
  const int x = threadIdx.x, y = threadIdx.y;
  const long long left = (long long)blockIdx.x * side - 1;  // of the tile's first column
  for (long long top = (long long)blockIdx.y * side - 1; top < m; top += (long long)gridDim.y * side) {
    for (int r = y; r < side + 2; r += step) {
      for (int q = x; q < side + 2; q += side) {
        const long long i = top + r, j = left + q;
        if (i >= 0 && i < m && j >= 0 && j < n) tile[r][q] = u[i * n + j];
      }
    }
    __syncthreads();  // the tile is complete
    for (int r = y + 1; r <= side; r += step) {
      const int q = x + 1;
      const long long i = top + r, j = left + q;
      if (i >= m || j >= n) continue;
      const bool stays = steps == 0 || i == 0 || i == m - 1 || j == 0 || j == n - 1;
      const T sum = tile[r - 1][q] + tile[r + 1][q] + tile[r][q - 1] + tile[r][q + 1];
      c[i * n + j] = stays ? tile[r][q] : tile[r][q] / 2 + sum / 8;
    }
    __syncthreads();  // nobody reads it any more
  }
}
