// nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
//   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
// Idea: on a CPU, an item has 64 points in vectors, and `rsqrt` in place of a root and a division. On a GPU, a group
//   shares tiles of bodies.
// Model: on a CPU, the lanes of a vector are points that follow one another. On a GPU, an item has one point.
// Memory: a CPU's item copies its points, so that all x, all y and all z lie side by side. Bodies are read in order,
//   each number copied to all lanes. A group of a GPU brings a tile of bodies to local memory, a body an item, and all
//   items read them there.
// Edges: lanes and items beyond the last point compute with zeros, and are not written. An empty sum is 0.
// ---
// Work items of attract_vectors on a CPU: ceil(m / 64), in groups of 1
// Work items on a GPU: m, in groups of 256

#if CPU

enum { lanes = sizeof(V) / sizeof(T), points = 64, together = 2 };

/// Adds to the sums of some vectors of points what all bodies give them.
__attribute__((always_inline)) void attract(global const T* position, global const T* mass, long n, const V* own_x,
                                            const V* own_y, const V* own_z, V* sum_x, V* sum_y, V* sum_z) {
  for (long j = 0; j < n; ++j) {
#pragma unroll
    for (int at = 0; at < together; ++at) {
      const V x = position[3 * j] - own_x[at], y = position[3 * j + 1] - own_y[at], z = position[3 * j + 2] - own_z[at];
      const V r = rsqrt(x * x + y * y + z * z + (T)1 / 1024), weight = mass[j] * (r * (r * r));
      sum_x[at] += weight * x;
      sum_y[at] += weight * y;
      sum_z[at] += weight * z;
    }
  }
}

__attribute__((reqd_work_group_size(1, 1, 1))) kernel void attract_vectors(global const T* at, global const T* position,
                                                                           global const T* mass, global T* c, long m,
                                                                           long n) {
  for (long first = get_global_id(0) * points; first < min(m, (long)(get_global_id(0) + 1) * points);
       first += together * lanes) {
    V own[3][together], sum[3][together];
    const long there = min((long)together * lanes, m - first);
    for (int axis = 0; axis < 3; ++axis) {
      for (int i = 0; i < together * lanes; ++i) ((T*)own[axis])[i] = i < there ? at[3 * (first + i) + axis] : 0;
      for (int k = 0; k < together; ++k) sum[axis][k] = 0;
    }
    attract(position, mass, n, own[0], own[1], own[2], sum[0], sum[1], sum[2]);
    for (int axis = 0; axis < 3; ++axis) {
      for (int i = 0; i < there; ++i) c[3 * (first + i) + axis] = ((const T*)sum[axis])[i];
    }
  }
}

#else

enum { items = 256 };

__attribute__((reqd_work_group_size(items, 1, 1))) kernel void nbody(global const T* at, global const T* position,
                                                                     global const T* mass, global T* c, long m,
                                                                     long n) {
  local T tile_x[items], tile_y[items], tile_z[items], tile_mass[items];
  const long i = get_global_id(0);
  const int item = get_local_id(0);
  const T own_x = i < m ? at[3 * i] : 0, own_y = i < m ? at[3 * i + 1] : 0, own_z = i < m ? at[3 * i + 2] : 0;
  T sum_x = 0, sum_y = 0, sum_z = 0;
  for (long first = 0; first < n; first += items) {
    const long j = first + item;
    if (j < n) {
      tile_x[item] = position[3 * j];
      tile_y[item] = position[3 * j + 1];
      tile_z[item] = position[3 * j + 2];
      tile_mass[item] = mass[j];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int there = min((long)items, n - first);
#pragma unroll 8
    for (int k = 0; k < there; ++k) {
      const T x = tile_x[k] - own_x, y = tile_y[k] - own_y, z = tile_z[k] - own_z;
      const T r = rsqrt(x * x + y * y + z * z + (T)1 / 1024), weight = tile_mass[k] * (r * (r * r));
      sum_x += weight * x;
      sum_y += weight * y;
      sum_z += weight * z;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (i < m) {
    c[3 * i] = sum_x;
    c[3 * i + 1] = sum_y;
    c[3 * i + 2] = sum_z;
  }
}

#endif
