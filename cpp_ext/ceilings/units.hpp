// The fastest instruction that multiplies and adds in each number format: Unit<T>. Where only some CPUs have a faster
//   one, Dots<T> is to be called if `Dots<T>::there()`. A step adds `products` products to the sums of a register.
#pragma once

#include <cstdint>

#include "../../kernels/formats.hpp"
#include "../../kernels/matmul/tuned/avx_dots.hpp"

namespace {

/// The 16-bit formats are computed in float.
template <typename T>
struct Unit {
  using V = Simd<Sum<T>>;
  using Register = typename V::Register;
  static constexpr int products = V::lanes;
  static Register broadcast(Sum<T> x) { return V::broadcast(x); }
  static Register step(Register sum, Register x, Register y) { return V::multiply_add(sum, x, y); }
  static Register add(Register x, Register y) { return V::add(x, y); }
};

/// Pairs of 16-bit integers. The two products of a lane are added to one another, then to the sum.
template <>
struct Unit<std::int8_t> : Simd<std::int32_t> {
  static constexpr int products = 2 * lanes;
  static Register step(Register sum, Register x, Register y) { return Simd<Pair>::multiply_add(x, y, sum); }
};

/// Products of neighbours that one instruction multiplies and adds to one lane of the sum.
template <typename T>
struct Dots : Unit<T> {
  static bool there() { return false; }
};

#if defined(__AVX512F__)
#define DOTS __attribute__((target("avx512bf16,avx512vnni")))

template <>
struct Dots<BFloat16> : Unit<BFloat16> {
  static constexpr int products = 32;
  static bool there() { return has_fast_pairs_of_bfloat16(); }
  DOTS static Register step(Register sum, Register x, Register y) {
    using Pairs = Simd<BFloat16Pair>;
    return Pairs::multiply_add(reinterpret_cast<Pairs::Register>(x), reinterpret_cast<Pairs::Register>(y), sum);
  }
};

template <>
struct Dots<std::int8_t> : Unit<std::int8_t> {
  static constexpr int products = 64;
  static bool there() { return __builtin_cpu_supports("avx512vnni"); }
  DOTS static Register step(Register sum, Register x, Register y) { return Simd<Quad>::multiply_add(x, y, sum); }
};
#else
#define DOTS
#endif

}  // namespace
