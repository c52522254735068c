// nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
//   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
// Idea: an instruction gives the reciprocal of a root, in place of a root and a division. A thread has two points, for
//   which it reads each body once.
// Model: a block has 128 threads and a tile of as many bodies in shared memory.
// Memory: the numbers of a body lie side by side in shared memory, and are read at once. All threads of a warp read the
//   same ones.
// Edges: every thread goes to every barrier, so none returns early. The last tile is filled up with masses of 0.
// ---
// Work items: ceil(m / 2), in groups of 128

namespace {

constexpr int threads = 128, points = 2;

/// A body's numbers, which are read at once.
template <typename T>
struct __align__(16) Body {
  T x, y, z, mass;
};

}  // namespace

template <typename T>
__global__ void __launch_bounds__(threads)
    nbody(const T* at, const T* position, const T* mass, T* c, long long m, long long n) {
  __shared__ Body<T> tile[threads];
  T own[points][3], sum[points][3] = {};
  const long long begin = (long long)blockIdx.x * (threads * points) + threadIdx.x;
#pragma unroll
  for (int p = 0; p < points; ++p) {
    const long long i = begin + p * threads;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) own[p][axis] = i < m ? at[3 * i + axis] : T(0);
  }
  for (long long first = 0; first < n; first += threads) {
    const long long j = first + threadIdx.x;
    tile[threadIdx.x] = j < n ? Body<T>{position[3 * j], position[3 * j + 1], position[3 * j + 2], mass[j]} : Body<T>{};
    __syncthreads();  // the tile is complete
#pragma unroll 8
    for (int k = 0; k < threads; ++k) {
      const Body<T> body = tile[k];
#pragma unroll
      for (int p = 0; p < points; ++p) {
        const T x = body.x - own[p][0], y = body.y - own[p][1], z = body.z - own[p][2];
        const T r = rsqrt(x * x + y * y + z * z + T(1) / 1024), weight = body.mass * (r * (r * r));
        sum[p][0] += weight * x;
        sum[p][1] += weight * y;
        sum[p][2] += weight * z;
      }
    }
    __syncthreads();  // nobody reads it any more
  }
#pragma unroll
  for (int p = 0; p < points; ++p) {
    const long long i = begin + p * threads;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      if (i < m) c[3 * i + axis] = sum[p][axis];
    }
  }
}
