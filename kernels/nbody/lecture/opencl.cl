// nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
//   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
// Model: an open standard for CPUs, GPUs and more. A kernel is written for one work item, which has one point.
// Memory: all work items read the same body at about the same time. A GPU coalesces such accesses into one.
// Edges: work items past the last point do nothing. An empty sum is 0.
// ---
// Work items: m, in groups of 64

kernel void nbody(global const T* at, global const T* position, global const T* mass, global T* c, long m, long n) {
  const long i = get_global_id(0);
  if (i >= m) return;
  T sum_x = 0, sum_y = 0, sum_z = 0;
  for (long j = 0; j < n; ++j) {
    const T x = position[3 * j] - at[3 * i], y = position[3 * j + 1] - at[3 * i + 1];
    const T z = position[3 * j + 2] - at[3 * i + 2], square = x * x + y * y + z * z + (T)1 / 1024;
    const T weight = mass[j] / (square * sqrt(square));
    sum_x += weight * x;
    sum_y += weight * y;
    sum_z += weight * z;
  }
  c[3 * i] = sum_x;
  c[3 * i + 1] = sum_y;
  c[3 * i + 2] = sum_z;
}
