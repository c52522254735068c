// nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
//   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
// Model: an algorithm of the standard library calls a function for each point. Its policy, `par`, allows it to divide
//   the points among threads that share memory.
// Memory: every thread reads all bodies for each of its points, in order. They stay in a cache.
// Edges: none; the algorithm and the loop end with the last point and body, and an empty sum is 0.
#include <algorithm>
#include <cstdint>
#include <execution>

#include "../../indices.hpp"
#include "../../roots.hpp"

template <typename T>
static void nbody(const T* at, const T* position, const T* mass, T* c, std::int64_t m, std::int64_t n) {
  std::for_each(std::execution::par, Index(0), Index(m), [=](std::int64_t i) {
    T sum_x = 0, sum_y = 0, sum_z = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const T x = position[3 * j] - at[3 * i], y = position[3 * j + 1] - at[3 * i + 1];
      const T z = position[3 * j + 2] - at[3 * i + 2], square = x * x + y * y + z * z + T(1) / 1024;
      const T weight = mass[j] / (square * root(square));
      sum_x += weight * x;
      sum_y += weight * y;
      sum_z += weight * z;
    }
    c[3 * i] = sum_x;
    c[3 * i + 1] = sum_y;
    c[3 * i + 2] = sum_z;
  });
}
