// Products of two registers of elements, added to a register of sums: as they are, as floats, or in pairs.
#pragma once

#include "../../counting.hpp"
#include "../../simd.hpp"

namespace {

/// How many elements are multiplied at once, and how their products are added to sums.
template <typename T>
struct Products : Simd<T> {
  using V = Simd<T>;
  static auto add(const T* a, const T* b, typename V::Register sums) {
    return V::multiply_add(V::load(a), V::load(b), sums);
  }
};

/// Two elements share a lane, and become floats there: the upper one without the lower, the lower one moved up. To
/// widen elements one by one, instructions would have to move them to other lanes.
template <>
struct Products<BFloat16> : Simd<float> {
  using V = Simd<float>;
  using Words = Simd<BFloat16>::Words;
  static constexpr std::int64_t lanes = 2 * V::lanes;
  static Words load(const BFloat16* from) {
    return reinterpret_cast<Words>(V::load(reinterpret_cast<const float*>(from)));
  }
  static Register upper(Words x) { return reinterpret_cast<Register>(x & 0xffff0000u); }
  static Register lower(Words x) { return reinterpret_cast<Register>(x << 16); }
  static Register add(const BFloat16* a, const BFloat16* b, Register sums) {
    const Words x = load(a), y = load(b);
    return V::multiply_add(upper(x), upper(y), V::multiply_add(lower(x), lower(y), sums));
  }
};

/// One instruction multiplies 16 bits and adds two products, which needs no more than 17 bits.
template <>
struct Products<std::int8_t> : Simd<std::int32_t> {
  using V = Simd<std::int32_t>;
  static constexpr std::int64_t lanes = 2 * V::lanes;
  static Register add(const std::int8_t* a, const std::int8_t* b, Register sums) {
    return V::add(sums, V::multiply_pairs(V::widen_to_pairs(a), V::widen_to_pairs(b)));
  }
};

/// The sum of n products.
template <typename T>
Sum<T> sum_of(const T* a, const T* b, Size n) {
  using V = Products<T>;
  constexpr Size registers = 8;
  typename V::Register sums[registers];
  for (auto& each : sums) each = V::broadcast(0);
  Size i = 0;
  for (; i + registers * V::lanes <= n; i += registers * V::lanes) {
#pragma GCC unroll 8
    for (Size at = 0; at < registers; ++at) sums[at] = V::add(a + i + at * V::lanes, b + i + at * V::lanes, sums[at]);
  }
  for (; i + V::lanes <= n; i += V::lanes) sums[0] = V::add(a + i, b + i, sums[0]);
  for (Size half = registers / 2; half > 0; half /= 2) {
    for (Size at = 0; at < half; ++at) sums[at] = Simd<Sum<T>>::add(sums[at], sums[at + half]);
  }
  Sum<T> sum = sum_of_lanes<T>(sums[0]);
  for (; i < n; ++i) sum += widen(a[i]) * widen(b[i]);
  return sum;
}

}  // namespace
