// heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
// Model: a kernel written for one thread of an NVIDIA GPU, which computes one element of one step. Blocks cannot wait
//   for each other, so each step is a launch of its own.
// Memory: each launch reads one array and writes another one, which the next launch reads. Neighbouring threads read
//   and write neighbours of a row. So the GPU coalesces the accesses of a warp into few transactions.
// Edges: threads past the last column or row do nothing. Those of the boundary copy, as all do after 0 steps. A grid has
//   at most 65,535 blocks from top to bottom. With more rows, threads go on one grid height further down.
// ---
// Work items: n x m, in groups of 32 x 8
// Repeat: steps

template <typename T>
__global__ void heat(const T* u, T* c, long long m, long long n, long long steps) {
  const long long j = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= n) return;
  for (long long i = (long long)blockIdx.y * blockDim.y + threadIdx.y; i < m; i += (long long)gridDim.y * blockDim.y) {
    const long long at = i * n + j;
    const bool stays = steps == 0 || i == 0 || i == m - 1 || j == 0 || j == n - 1;
    c[at] = stays ? u[at] : u[at] / 2 + (u[at - n] + u[at + n] + u[at - 1] + u[at + 1]) / 8;
  }
}
