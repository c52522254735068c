// The number formats that C++17 has no types for, and what sources do with any format. They widen what is loaded,
// compute in Sum<T>, and narrow what is stored. Everything is in an unnamed namespace, for the reason that simd.hpp
// gives.
#pragma once
#ifndef PY_BACKENDS_FORMATS  // a copy beside somebody's sources is another file, which is not this one once more
#define PY_BACKENDS_FORMATS

#if defined(__CUDACC_RTC__)  // NVIDIA's compiler at run time, which brings no headers
namespace std {
using int8_t = signed char;
using int32_t = int;
using uint16_t = unsigned short;
using uint32_t = unsigned;
}  // namespace std
#define __builtin_memcpy memcpy
#define __builtin_huge_valf() __int_as_float(0x7f800000)
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

/// The type in which elements of T are computed: wide enough for the product of two of them.
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

// These are functions, since compilers would make branches of the same code written in place, and no vectors.
template <typename Integer>
Integer lesser(Integer x, Integer y) {
  return x < y ? x : y;
}
template <typename Integer>
Integer greater(Integer x, Integer y) {
  return x > y ? x : y;
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
  // The exponent counts from -15 here and from -127 in a float. Multiplying by 2^112, which is exact, makes up for it.
  const std::uint32_t bits = std::uint32_t(std::int16_t(x.bits)) << 13 & 0x8fffe000u;
  const std::uint32_t infinite = (bits & 0xf800000u) == 0xf800000u ? 0x7f800000u : 0;
  return float_of_bits(bits_of_float(float_of_bits(bits) * 0x1p112f) | infinite);
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
    const std::uint32_t bits = bits_of_float(x), sign = bits >> 16 & 0x8000u;
    const std::int32_t magnitude = bits & 0x7fffffff, infinite = 0x47800000, normal = 0x38800000;  // 2^16 and 2^-14
    const std::int32_t limited = lesser(magnitude, infinite), power = limited & 0x7f800000;
    // A float 2^13 times as large ends with the last digit to keep, so the addition rounds there.
    const std::int32_t large = greater(power, normal) + (13 << 23);
    const std::int32_t digits = bits_of_float(float_of_bits(limited) + float_of_bits(large)) - large;
    // The exponent counts from -15, and one less where the leading digit is the one that is not stored.
    const std::uint32_t exponent = (large - (126 << 23)) >> 13, nan = magnitude > 0x7f800000 ? 0x7e00 : 0;
    return {static_cast<std::uint16_t>((exponent + digits) | nan | sign)};
#endif
  }
};

/// The element of T nearest to a value. Of two equally near ones it is the even one.
template <typename T>
T narrow(Sum<T> x) {
  return Narrow<T>::from(x);
}

}  // namespace

#endif
