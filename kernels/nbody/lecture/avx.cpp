// nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
//   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
// Model: one thread. Instructions subtract, multiply and add, divide and take roots in all lanes of a register. The
//   lanes are points that follow one another.
// Memory: some points are first copied, so that all x, all y and all z lie side by side. For these all bodies are read,
//   in order, each number copied to all lanes.
// Edges: lanes beyond the last point compute with zeros, and are not written. An empty sum is 0.
#include <cstdint>

#include "../../counting.hpp"
#include "../../simd.hpp"

template <typename T>
static void nbody(const T* at, const T* position, const T* mass, T* c, std::int64_t m, std::int64_t n) {
  using V = Simd<T>;
  for (std::int64_t i = 0; i < m; i += V::lanes) {
    const std::int64_t points = least(V::lanes, m - i);
    T own[3][V::lanes] = {};
    for (std::int64_t k = 0; k < 3 * points; ++k) own[k % 3][k / 3] = at[3 * i + k];
    const auto own_x = V::load(own[0]), own_y = V::load(own[1]), own_z = V::load(own[2]);
    auto sum_x = V::broadcast(0), sum_y = sum_x, sum_z = sum_x;
    for (std::int64_t j = 0; j < n; ++j) {
      const auto x = V::subtract(V::broadcast(position[3 * j]), own_x);
      const auto y = V::subtract(V::broadcast(position[3 * j + 1]), own_y);
      const auto z = V::subtract(V::broadcast(position[3 * j + 2]), own_z);
      const auto of_z = V::multiply_add(z, z, V::broadcast(T(1) / 1024));
      const auto square = V::multiply_add(x, x, V::multiply_add(y, y, of_z));
      const auto weight = V::divide(V::broadcast(mass[j]), V::multiply(square, V::root(square)));
      sum_x = V::multiply_add(weight, x, sum_x);
      sum_y = V::multiply_add(weight, y, sum_y);
      sum_z = V::multiply_add(weight, z, sum_z);
    }
    V::store(own[0], sum_x);
    V::store(own[1], sum_y);
    V::store(own[2], sum_z);
    for (std::int64_t k = 0; k < 3 * points; ++k) c[3 * i + k] = own[k % 3][k / 3];
  }
}
