// nbody for the compiler's vectors: what some points get of all bodies, in cpp and openmp.
#pragma once

#include "../../counting.hpp"
#include "../../roots.hpp"

namespace {

/// So many that loads of one sum need not wait for the store before.
constexpr Size most_points = 256;

/// The accelerations of some points, up to `most_points`.
template <typename T>
void accelerate(const T* at, const T* position, const T* mass, T* c, Size points, Size n) {
  T own_x[most_points], own_y[most_points], own_z[most_points];
  T sum_x[most_points] = {}, sum_y[most_points] = {}, sum_z[most_points] = {};
  for (Size i = 0; i < points; ++i) {
    own_x[i] = at[3 * i];
    own_y[i] = at[3 * i + 1];
    own_z[i] = at[3 * i + 2];
  }
  for (Size j = 0; j < n; ++j) {
#pragma omp simd
    for (Size i = 0; i < points; ++i) {
      const T x = position[3 * j] - own_x[i], y = position[3 * j + 1] - own_y[i], z = position[3 * j + 2] - own_z[i];
      const T square = x * x + y * y + z * z + T(1) / 1024;
      const T weight = mass[j] / (square * root(square));
      sum_x[i] += weight * x;
      sum_y[i] += weight * y;
      sum_z[i] += weight * z;
    }
  }
  for (Size i = 0; i < points; ++i) {
    c[3 * i] = sum_x[i];
    c[3 * i + 1] = sum_y[i];
    c[3 * i + 2] = sum_z[i];
  }
}

}  // namespace
