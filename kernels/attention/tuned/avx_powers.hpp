// Powers of two in all lanes of a register, of numbers that are 0 or less: the weights of scores below the largest.
//
// x is a whole number n and a rest f of at most one half. A large number is added to x, and behind its last digit there is
// no place for f. So its lowest bits hold n, and are shifted to where an exponent stands. 2^f = 1 + f p(f), with a
// polynomial p that equals (2^f - 1) / f at the Chebyshev nodes. Its relative error is 5e-9 in float, and 9e-18 in double.
// 2^0 is exactly 1. What is too small for a normal number is 0, also 2^-infinity, and 2^NaN is NaN.
#pragma once

#include "../../simd.hpp"

namespace {

/// Of a number format: the number that is added, the least exponent, and p from the last term to the first.
template <typename S>
struct Powers;
template <>
struct Powers<float> {
  static constexpr float large = 0x1.8p23f + 127, least = -127, lowest = -0x1.fffffep127f;
  static constexpr float polynomial[] = {1.5453162945120455e-4f, 1.3390863364671206e-3f, 9.618082557277852e-3f,
                                         5.550357114219078e-2f,  2.4022650760568126e-1f, 6.931471880262288e-1f};
};
template <>
struct Powers<double> {
  static constexpr double large = 0x1.8p52 + 1023, least = -1023, lowest = -0x1.fffffffffffffp1023;
  static constexpr double polynomial[] = {4.454945547842242e-10, 7.07258646795143e-9,   1.017806253298163e-7,
                                          1.3215442585889058e-6, 1.5252733829686257e-5, 1.5403530441737684e-4,
                                          1.3333558146417e-3,    9.61812910760689e-3,   5.55041086648216e-2,
                                          2.4022650695910097e-1, 6.931471805599453e-1};
};

/// The greater of two, and the second where one is NaN; and the bits moved up to where the exponent stands.
#if defined(__AVX512F__)
inline __m512 greater(__m512 x, __m512 y) { return _mm512_maskz_max_ps(0xffff, x, y); }
inline __m512d greater(__m512d x, __m512d y) { return _mm512_maskz_max_pd(0xff, x, y); }
inline __m512 exponent(__m512 x) {
  return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, _mm512_castps_si512(x), 23));
}
inline __m512d exponent(__m512d x) {
  return _mm512_castsi512_pd(_mm512_maskz_slli_epi64(0xff, _mm512_castpd_si512(x), 52));
}
#elif defined(__AVX2__) && defined(__FMA__)
inline __m256 greater(__m256 x, __m256 y) { return _mm256_max_ps(x, y); }
inline __m256d greater(__m256d x, __m256d y) { return _mm256_max_pd(x, y); }
inline __m256 exponent(__m256 x) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(x), 23)); }
inline __m256d exponent(__m256d x) { return _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_castpd_si256(x), 52)); }
#else
inline __m128 greater(__m128 x, __m128 y) { return _mm_max_ps(x, y); }
inline __m128d greater(__m128d x, __m128d y) { return _mm_max_pd(x, y); }
inline __m128 exponent(__m128 x) { return _mm_castsi128_ps(_mm_slli_epi32(_mm_castps_si128(x), 23)); }
inline __m128d exponent(__m128d x) { return _mm_castsi128_pd(_mm_slli_epi64(_mm_castpd_si128(x), 52)); }
#endif

template <typename S>
inline __attribute__((always_inline)) typename Simd<S>::Register power_of_two(typename Simd<S>::Register x) {
  using V = Simd<S>;
  x = greater(V::broadcast(Powers<S>::least), x);
  const auto shifted = V::add(x, V::broadcast(Powers<S>::large));
  const auto f = V::subtract(x, V::subtract(shifted, V::broadcast(Powers<S>::large)));
  auto p = V::broadcast(Powers<S>::polynomial[0]);
#pragma GCC unroll 11
  for (const S coefficient : Powers<S>::polynomial) {
    if (coefficient != Powers<S>::polynomial[0]) p = V::multiply_add(p, f, V::broadcast(coefficient));
  }
  return V::multiply(exponent(shifted), V::multiply_add(p, f, V::broadcast(1)));
}

/// The largest lane.
template <typename S>
inline S largest_of(typename Simd<S>::Register x) {
  S lane[Simd<S>::lanes];
  Simd<S>::store(lane, x);
  for (std::int64_t at = 1; at < Simd<S>::lanes; ++at) lane[0] = lane[at] > lane[0] ? lane[at] : lane[0];
  return lane[0];
}

}  // namespace
