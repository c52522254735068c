// Powers of two, of numbers that are 0 or less: the weights of scores below the largest.
//
// x is a whole number n and a rest f of at most one half. A large number is added to x, and behind its last digit there
// is no place for f. So its lowest bits hold n, and are shifted to where an exponent stands. 2^f = 1 + f p(f), with a
// polynomial p that equals (2^f - 1) / f at the Chebyshev nodes. Its relative error is 5e-9 in float, and 9e-18 in
// double. 2^0 is exactly 1. What is too small for a normal number is 0, also 2^-infinity, and 2^NaN is NaN.
#pragma once

#include "../../formats.hpp"

namespace {

/// Of a number format: the number that is added, the least exponent, and p from the last term to the first.
template <typename S>
struct Powers;

template <>
struct Powers<float> {
  using Bits = std::uint32_t;
  static constexpr int digits = 23, terms = 6;
  static constexpr float large = 0x1.8p23f + 127, least = -127;
  static constexpr float polynomial[terms] = {1.5453162945120455e-4f, 1.3390863364671206e-3f, 9.618082557277852e-3f,
                                              5.550357114219078e-2f,  2.4022650760568126e-1f, 6.931471880262288e-1f};
};

template <>
struct Powers<double> {
  using Bits = std::uint64_t;
  static constexpr int digits = 52, terms = 11;
  static constexpr double large = 0x1.8p52 + 1023, least = -1023;
  static constexpr double polynomial[] = {4.454945547842242e-10, 7.07258646795143e-9,   1.017806253298163e-7,
                                          1.3215442585889058e-6, 1.5252733829686257e-5, 1.5403530441737684e-4,
                                          1.3333558146417e-3,    9.61812910760689e-3,   5.55041086648216e-2,
                                          2.4022650695910097e-1, 6.931471805599453e-1};
};

template <typename S>
inline S power_of_two(S x) {
  using P = Powers<S>;
  typename P::Bits bits;
  x = x < P::least ? P::least : x;
  const S shifted = x + P::large, f = x - (shifted - P::large);
  S p = P::polynomial[0];
#pragma GCC unroll 11
  for (int term = 1; term < P::terms; ++term) p = p * f + P::polynomial[term];
  __builtin_memcpy(&bits, &shifted, sizeof bits);
  bits <<= P::digits;
  S power;
  __builtin_memcpy(&power, &bits, sizeof bits);
  return power * (p * f + 1);
}

}  // namespace
