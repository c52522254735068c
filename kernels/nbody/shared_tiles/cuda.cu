// nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
//   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
// Idea: a block brings a tile of bodies to memory that its threads share, a body a thread. There all of them read it,
//   and global memory only once a block.
// Model: a thread has one point.
// Memory: all threads of a warp read the same number in shared memory, which is one access.
// Edges: every thread goes to every barrier, so none returns early. An empty sum is 0.
// ---
// Work items: m, in groups of 256

namespace {

constexpr int threads = 256;

}  // namespace

template <typename T>
__global__ void __launch_bounds__(threads)
    nbody(const T* at, const T* position, const T* mass, T* c, long long m, long long n) {
  __shared__ T tile[4][threads];
  const long long i = (long long)blockIdx.x * threads + threadIdx.x;
  const bool there = i < m;
  const T own_x = there ? at[3 * i] : T(0), own_y = there ? at[3 * i + 1] : T(0), own_z = there ? at[3 * i + 2] : T(0);
  T sum_x = 0, sum_y = 0, sum_z = 0;
  for (long long first = 0; first < n; first += threads) {
    const long long own = first + threadIdx.x;
    if (own < n) {
      for (int axis = 0; axis < 3; ++axis) tile[axis][threadIdx.x] = position[3 * own + axis];
      tile[3][threadIdx.x] = mass[own];
    }
    __syncthreads();  // the tile is complete
    const int bodies = n - first < threads ? n - first : threads;
    for (int j = 0; j < bodies; ++j) {
      const T x = tile[0][j] - own_x, y = tile[1][j] - own_y, z = tile[2][j] - own_z;
      const T square = x * x + y * y + z * z + T(1) / 1024, weight = tile[3][j] / (square * sqrt(square));
      sum_x += weight * x;
      sum_y += weight * y;
      sum_z += weight * z;
    }
    __syncthreads();  // nobody reads it any more
  }
  if (!there) return;
  c[3 * i] = sum_x;
  c[3 * i + 1] = sum_y;
  c[3 * i + 2] = sum_z;
}
