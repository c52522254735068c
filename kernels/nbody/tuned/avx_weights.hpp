// What a body's mass weighs at a distance: mass / square^(3/2).
//
// An instruction estimates r, the reciprocal of the square's root. With e = 1 - square r^2, the third power of the exact
// one is r^3 (1 - e)^(-3/2) = r^3 (1 + 3/2 e + 15/8 e^2 + 35/16 e^3 + 315/128 e^4 + ...). The relative error of r is at
// most 2^-14 in AVX-512, and 1.5 * 2^-12 elsewhere, so that |e| is below 2^-12.99 and 2^-10.4. As many terms are added
// as it takes to leave out less than half a unit roundoff.
#pragma once

#include "../../simd.hpp"

namespace {

/// The terms behind the 1, from the last one to the first.
constexpr double last_terms[] = {315.0 / 128, 35.0 / 16, 15.0 / 8, 3.0 / 2};

/// A register of estimates, and after how many terms they are exact enough; 0 where there is no estimate.
template <typename T>
struct Estimate {
  static constexpr std::int64_t terms = 0;
};

#if defined(__AVX512F__)
template <>
struct Estimate<float> {
  static constexpr std::int64_t terms = 1;
  static __m512 of(__m512 square) { return _mm512_maskz_rsqrt14_ps(0xffff, square); }
  /// The lesser one, and the second where one is NaN.
  static __m512 least_of(__m512 x, __m512 y) { return _mm512_maskz_min_ps(0xffff, x, y); }
};
template <>
struct Estimate<double> {
  static constexpr std::int64_t terms = 4;
  static __m512d of(__m512d square) { return _mm512_maskz_rsqrt14_pd(0xff, square); }
  static __m512d least_of(__m512d x, __m512d y) { return _mm512_maskz_min_pd(0xff, x, y); }
};
#elif defined(__AVX2__)
template <>
struct Estimate<float> {
  static constexpr std::int64_t terms = 2;
  static __m256 of(__m256 square) { return _mm256_rsqrt_ps(square); }
  static __m256 least_of(__m256 x, __m256 y) { return _mm256_min_ps(x, y); }
};
#else
template <>
struct Estimate<float> {
  static constexpr std::int64_t terms = 2;
  static __m128 of(__m128 square) { return _mm_rsqrt_ps(square); }
  static __m128 least_of(__m128 x, __m128 y) { return _mm_min_ps(x, y); }
};
#endif

template <typename T>
struct Weights : Simd<T> {
  using V = Simd<T>;
  using Register = typename V::Register;

  static Register weight(Register mass, Register square) {
    constexpr std::int64_t terms = Estimate<T>::terms;
    if constexpr (terms == 0) {
      return V::divide(mass, V::multiply(square, V::root(square)));
    } else {
      const Register one = V::broadcast(1), r = Estimate<T>::of(square), r2 = V::multiply(r, r);
      const Register e = V::subtract_product(one, square, r2);
      Register series = V::broadcast(T(last_terms[4 - terms]));
#pragma GCC unroll 4
      for (std::int64_t term = 5 - terms; term < 4; ++term) {
        series = V::multiply_add(series, e, V::broadcast(T(last_terms[term])));
      }
      // Where the square is infinite, r is 0 and e is NaN. Then the weight is 0.
      series = Estimate<T>::least_of(V::multiply_add(series, e, one), V::broadcast(2));
      return V::multiply(mass, V::multiply(V::multiply(r, r2), series));
    }
  }
};

}  // namespace
