// The number formats that C++17 has no types for, and what texts do with any format: widen what is loaded, compute in
// Sum<T>, narrow what is stored. Everything is in an unnamed namespace, for the reason that simd.hpp gives.
#pragma once

#if defined(__CUDACC_RTC__)  // NVIDIA's compiler at run time, which brings no headers
namespace std {
using int8_t = signed char;
using int32_t = int;
using uint16_t = unsigned short;
using uint32_t = unsigned;
}  // namespace std
#define __builtin_memcpy memcpy
#else
#include <cstdint>
#endif

namespace {

/// IEEE 754 binary16: 1 bit of sign, 5 of exponent, 10 of fraction.
struct Float16 {
  std::uint16_t bits;
};

/// The upper half of a float: 1 bit of sign, 8 of exponent, 7 of fraction.
struct BFloat16 {
  std::uint16_t bits;
};

template <typename T>
struct SumOf {
  using Type = T;
};
template <>
struct SumOf<Float16> {
  using Type = float;
};
template <>
struct SumOf<BFloat16> {
  using Type = float;
};
template <>
struct SumOf<std::int8_t> {
  using Type = std::int32_t;
};

/// The type in which is computed with elements of T: wide enough for the product of two of them.
template <typename T>
using Sum = typename SumOf<T>::Type;

inline float float_of_bits(std::uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

inline std::uint32_t bits_of_float(float x) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}

inline float widen(float x) { return x; }
inline double widen(double x) { return x; }
inline std::int32_t widen(std::int8_t x) { return x; }
inline float widen(BFloat16 x) { return float_of_bits(std::uint32_t(x.bits) << 16); }
inline float widen(Float16 x) {
#if defined(__CUDA_ARCH__)
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
  return wide;
#else
  // The exponent counts from -15 here and from -127 in a float: a product with 2^112, which is exact, makes up for it.
  const std::uint32_t magnitude = x.bits & 0x7fffu, infinite = magnitude >= 0x7c00u ? 0x7f800000u : 0;
  const std::uint32_t wide = bits_of_float(float_of_bits(magnitude << 13) * 0x1p112f);
  return float_of_bits(wide | infinite | (std::uint32_t(x.bits) & 0x8000u) << 16);
#endif
}

template <typename T>
struct Narrow {
  static T from(T x) { return x; }
};
template <>
struct Narrow<BFloat16> {
  static BFloat16 from(float x) {
    const std::uint32_t bits = bits_of_float(x), nan = (bits & 0x7fffffffu) > 0x7f800000u;
    const std::uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1);
    return {static_cast<std::uint16_t>((nan ? bits | 0x400000u : rounded) >> 16)};
  }
};
template <>
struct Narrow<Float16> {
  static Float16 from(float x) {
#if defined(__CUDA_ARCH__)
    Float16 rounded;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded.bits) : "f"(x));
    return rounded;
#else
    const std::uint32_t bits = bits_of_float(x), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    // From 2^-14 on: the exponent counts from -15, and 13 digits are rounded off.
    const std::uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1)) >> 13;
    // Below, the last digit is 2^-24, as it is of a float between a half and one: the addition rounds there.
    const std::uint32_t small = bits_of_float(float_of_bits(magnitude) + 0.5f) - 0x3f000000u;
    const std::uint32_t large = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
    const std::uint32_t rounded = magnitude < 0x38800000u ? small : magnitude < 0x47800000u ? normal : large;
    return {static_cast<std::uint16_t>(rounded | sign)};
#endif
  }
};

/// The element of T nearest to a value, of two equally near ones the even one.
template <typename T>
T narrow(Sum<T> x) {
  return Narrow<T>::from(x);
}

}  // namespace
