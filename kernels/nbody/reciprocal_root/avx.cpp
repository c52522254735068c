// nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
//   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
// Idea: an instruction estimates the reciprocal of a root, in far less time than a root and a division take. A few
//   terms of a series make it as exact as these are (avx_weights.hpp).
// Model: one thread. The lanes of a register are points that follow one another.
// Memory: some points are first copied, so that all x, all y and all z lie side by side. For these all bodies are read,
//   in order, each number copied to all lanes.
// Edges: lanes beyond the last point compute with zeros, and are not written. An empty sum is 0.
#include <cstdint>

#include "../tuned/avx_points.hpp"

template <typename T>
static void nbody(const T* at, const T* position, const T* mass, T* c, std::int64_t m, std::int64_t n) {
  for (Size i = 0; i < m; i += Points<T, 1>::count) {
    Points<T, 1> points(at + 3 * i, m - i);
    for (Size j = 0; j < n; ++j) points.attract(position + 3 * j, mass[j]);
    points.put(c + 3 * i, m - i);
  }
}
