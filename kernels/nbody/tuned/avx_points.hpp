// Some points in registers, a lane each, and what they get of one body.
#pragma once

#include "../../counting.hpp"
#include "avx_weights.hpp"

namespace {

/// The points of so many registers. Those beyond the last one are zeros.
template <typename T, Size registers>
class Points {
  using V = Weights<T>;

 public:
  static constexpr Size count = registers * V::lanes;

  /// There are so many from `at` on.
  Points(const T* at, Size there) {
    T own[3][count] = {};
    for (Size place = 0; place < 3 * least(count, there); ++place) own[place % 3][place / 3] = at[place];
    for (Size r = 0; r < registers; ++r) {
      for (Size axis = 0; axis < 3; ++axis) {
        own_[axis][r] = V::load(own[axis] + r * V::lanes);
        sum_[axis][r] = V::broadcast(0);
      }
    }
  }

  __attribute__((always_inline)) void attract(const T* position, T mass) {
    const auto x = V::broadcast(position[0]), y = V::broadcast(position[1]), z = V::broadcast(position[2]);
    const auto of_body = V::broadcast(mass);
#pragma GCC unroll 2
    for (Size r = 0; r < registers; ++r) {
      const auto dx = V::subtract(x, own_[0][r]), dy = V::subtract(y, own_[1][r]), dz = V::subtract(z, own_[2][r]);
      const auto of_z = V::multiply_add(dz, dz, V::broadcast(T(1) / 1024));
      const auto square = V::multiply_add(dx, dx, V::multiply_add(dy, dy, of_z));
      const auto weight = V::weight(of_body, square);
      sum_[0][r] = V::multiply_add(weight, dx, sum_[0][r]);
      sum_[1][r] = V::multiply_add(weight, dy, sum_[1][r]);
      sum_[2][r] = V::multiply_add(weight, dz, sum_[2][r]);
    }
  }

  /// Writes their sums, of so many.
  void put(T* c, Size there) const {
    T sum[3][count];
    for (Size r = 0; r < registers; ++r) {
      for (Size axis = 0; axis < 3; ++axis) V::store(sum[axis] + r * V::lanes, sum_[axis][r]);
    }
    for (Size place = 0; place < 3 * least(count, there); ++place) c[place] = sum[place % 3][place / 3];
  }

 private:
  typename V::Register own_[3][registers], sum_[3][registers];
};

}  // namespace
