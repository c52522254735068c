// The widest instruction that multiplies and adds in each number format: Unit<T>, and where only some CPUs have a wider
// one Dots<T>, to be called where `Dots<T>::there()`. A step adds `products` products to the sums of a register.
#pragma once

#include <cstdint>

#include "../../kernels/formats.hpp"
#include "../../kernels/simd.hpp"

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

/// Pairs of 16-bit integers: two products of a lane are added to one another, then to the sum.
template <>
struct Unit<std::int8_t> {
#if defined(__AVX512BW__)
  using Register = __m512i;
  static Register broadcast(std::int32_t x) { return _mm512_set1_epi32(x); }
  static Register step(Register sum, Register x, Register y) { return add(sum, _mm512_madd_epi16(x, y)); }
  static Register add(Register x, Register y) { return _mm512_add_epi32(x, y); }
#elif defined(__AVX2__)
  using Register = __m256i;
  static Register broadcast(std::int32_t x) { return _mm256_set1_epi32(x); }
  static Register step(Register sum, Register x, Register y) { return add(sum, _mm256_madd_epi16(x, y)); }
  static Register add(Register x, Register y) { return _mm256_add_epi32(x, y); }
#else
  using Register = __m128i;
  static Register broadcast(std::int32_t x) { return _mm_set1_epi32(x); }
  static Register step(Register sum, Register x, Register y) { return add(sum, _mm_madd_epi16(x, y)); }
  static Register add(Register x, Register y) { return _mm_add_epi32(x, y); }
#endif
  static constexpr int products = sizeof(Register) / 2;
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
  static bool there() { return __builtin_cpu_supports("avx512bf16"); }
  DOTS static Register step(Register sum, Register x, Register y) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh&>(x), reinterpret_cast<__m512bh&>(y));
  }
};

template <>
struct Dots<std::int8_t> : Unit<std::int8_t> {
  static constexpr int products = 64;
  static bool there() { return __builtin_cpu_supports("avx512vnni"); }
  DOTS static Register step(Register sum, Register x, Register y) { return _mm512_dpbusd_epi32(sum, x, y); }
};
#else
#define DOTS
#endif

}  // namespace
