// nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
//   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
// Model: a kernel written for one thread of an NVIDIA GPU, which has one point.
// Memory: all threads read the same body at about the same time. The GPU coalesces such accesses of a warp into one.
// Edges: threads past the last point do nothing. An empty sum is 0.
// ---
// Work items: m, in groups of 128

template <typename T>
__global__ void nbody(const T* at, const T* position, const T* mass, T* c, long long m, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= m) return;
  T sum_x = 0, sum_y = 0, sum_z = 0;
  for (long long j = 0; j < n; ++j) {
    const T x = position[3 * j] - at[3 * i], y = position[3 * j + 1] - at[3 * i + 1];
    const T z = position[3 * j + 2] - at[3 * i + 2], square = x * x + y * y + z * z + T(1) / 1024;
    const T weight = mass[j] / (square * sqrt(square));
    sum_x += weight * x;
    sum_y += weight * y;
    sum_z += weight * z;
  }
  c[3 * i] = sum_x;
  c[3 * i + 1] = sum_y;
  c[3 * i + 2] = sum_z;
}
