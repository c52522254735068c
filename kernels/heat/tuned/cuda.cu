// heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
// Idea: up to eight steps a launch. A block goes down the rows. As soon as a step has a row, the next step computes the
//   row above it. So a launch reads and writes every element once, for all of its steps.
// Model: a thread has a column, and of each step the last two elements in registers: with the one that comes, these are
//   three rows. Those beside are its neighbours'. They exchange them in shared memory, at one barrier a row.
// Memory: neighbouring threads read and write neighbours of a row, which the GPU coalesces. Shared memory has a row of
//   each step twice: one is read while the next one is written.
// Edges: around its 240 columns and 128 rows, a block computes as many more as there are steps to come. Their elements
//   beyond the matrix are 0, and count for nothing. Where the grid would be too high, blocks go on in strides of its
//   height. Every thread goes to every barrier.
// ---
// Work items: ceil(n / 240) * 256 x ceil(m / 128), in groups of 256 x 1
// Repeat: steps, up to 8 a launch

namespace {

constexpr int most_steps = 8, threads = 256, columns = threads - 2 * most_steps, rows = 128;

}  // namespace

template <typename T>
__global__ void __launch_bounds__(threads) heat(const T* u, T* c, long long m, long long n, long long steps) {
  __shared__ T shared[2][most_steps][threads + 2];
  const int x = threadIdx.x + 1;
  const long long j = (long long)blockIdx.x * columns + threadIdx.x - most_steps;
  const bool inside = j >= 0 && j < n, edge = j == 0 || j == n - 1;
  const bool own = inside && threadIdx.x >= most_steps && threadIdx.x < most_steps + columns;
  for (long long top = (long long)blockIdx.y * rows; top < m; top += (long long)gridDim.y * rows) {
    const long long bottom = top + rows < m ? top + rows : m;
    T above[most_steps] = {}, last[most_steps] = {};  // of each step before, of the two rows that came before
    for (long long i = top > steps ? top - steps : 0; i < bottom + steps; ++i) {
      T next = inside && i < m ? u[i * n + j] : T(0);
      const int now = i % 2;
#pragma unroll
      for (int step = 0; step < most_steps; ++step) {
        if (step < steps) {
          const long long row = i - step - 1;
          const T *beside = shared[1 - now][step], sum = above[step] + next + beside[x - 1] + beside[x + 1];
          const T after = edge || row == 0 || row == m - 1 ? last[step] : last[step] / 2 + sum / 8;
          above[step] = last[step];
          last[step] = next;
          shared[now][step][x] = next;
          next = after;
        }
      }
      const long long row = i - steps;
      if (own && row >= top && row < bottom) c[row * n + j] = next;
      __syncthreads();  // the rows that were written are complete, and nobody reads the others any more
    }
  }
}
