// What attention computes with registers, by intrinsics: the two products of a tile, and weights between them.
#pragma once

#include "../../counting.hpp"
#include "../../simd.hpp"
#include "powers.hpp"

namespace {

/// The greater of two, and the second where one is NaN; and the lowest bits moved to where the exponent stands.
#if defined(__AVX512F__)
inline __m512 greater(__m512 x, __m512 y) { return _mm512_maskz_max_ps(0xffff, x, y); }
inline __m512d greater(__m512d x, __m512d y) { return _mm512_maskz_max_pd(0xff, x, y); }
inline __m512 exponent(__m512 x) {
  return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, _mm512_castps_si512(x), 23));
}
inline __m512d exponent(__m512d x) {
  return _mm512_castsi512_pd(_mm512_maskz_slli_epi64(0xff, _mm512_castpd_si512(x), 52));
}
constexpr Size queries_of_tile = 12;  // 24 sums of 32 registers
#elif defined(__AVX2__) && defined(__FMA__)
inline __m256 greater(__m256 x, __m256 y) { return _mm256_max_ps(x, y); }
inline __m256d greater(__m256d x, __m256d y) { return _mm256_max_pd(x, y); }
inline __m256 exponent(__m256 x) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(x), 23)); }
inline __m256d exponent(__m256d x) { return _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_castpd_si256(x), 52)); }
constexpr Size queries_of_tile = 6;  // 12 sums of 16
#else
inline __m128 greater(__m128 x, __m128 y) { return _mm_max_ps(x, y); }
inline __m128d greater(__m128d x, __m128d y) { return _mm_max_pd(x, y); }
inline __m128 exponent(__m128 x) { return _mm_castsi128_ps(_mm_slli_epi32(_mm_castps_si128(x), 23)); }
inline __m128d exponent(__m128d x) { return _mm_castsi128_pd(_mm_slli_epi64(_mm_castpd_si128(x), 52)); }
constexpr Size queries_of_tile = 6;
#endif

template <typename S>
struct Registers {
  using V = Simd<S>;
  using Register = typename V::Register;
  /// Queries of a tile, of which each has two registers of sums.
  static constexpr Size rows = queries_of_tile, lanes = V::lanes;

  /// The scores of some queries, and of the keys of a panel. Rows of queries are d apart, and those of scores `apart`.
  template <Size rows>
  static void multiply_keys(const S* queries, Size d, const S* keys, S* scores, Size apart) {
    Register sum[rows][2];
#pragma GCC unroll 12
    for (Size r = 0; r < rows; ++r) sum[r][0] = sum[r][1] = V::broadcast(0);
    for (Size x = 0; x < d; ++x, keys += 2 * lanes) {
      const Register first = V::load(keys), second = V::load(keys + lanes);
#pragma GCC unroll 12
      for (Size r = 0; r < rows; ++r) {
        const Register query = V::broadcast(queries[r * d + x]);
        sum[r][0] = V::multiply_add(query, first, sum[r][0]);
        sum[r][1] = V::multiply_add(query, second, sum[r][1]);
      }
    }
#pragma GCC unroll 12
    for (Size r = 0; r < rows; ++r) {
      V::store(scores + r * apart, sum[r][0]);
      V::store(scores + r * apart + lanes, sum[r][1]);
    }
  }

  /// Adds values, times the weights of some queries, to as many registers of their sums.
  template <Size rows, Size registers>
  static void add_values(const S* weights, Size apart, Size keys, const S* values, Size width, S* sums) {
    Register sum[rows][registers];
#pragma GCC unroll 12
    for (Size r = 0; r < rows; ++r) {
#pragma GCC unroll 2
      for (Size at = 0; at < registers; ++at) sum[r][at] = V::load(sums + r * width + at * lanes);
    }
    for (Size j = 0; j < keys; ++j, values += width) {
      Register value[registers];
#pragma GCC unroll 2
      for (Size at = 0; at < registers; ++at) value[at] = V::load(values + at * lanes);
#pragma GCC unroll 12
      for (Size r = 0; r < rows; ++r) {
        const Register weight = V::broadcast(weights[r * apart + j]);
#pragma GCC unroll 2
        for (Size at = 0; at < registers; ++at) sum[r][at] = V::multiply_add(weight, value[at], sum[r][at]);
      }
    }
#pragma GCC unroll 12
    for (Size r = 0; r < rows; ++r) {
#pragma GCC unroll 2
      for (Size at = 0; at < registers; ++at) V::store(sums + r * width + at * lanes, sum[r][at]);
    }
  }

  /// The largest of some scores and of another number.
  static S largest(const S* scores, Size count, S before) {
    Register found = V::broadcast(before);
    for (Size j = 0; j < count; j += lanes) found = greater(V::load(scores + j), found);
    S lane[lanes];
    V::store(lane, found);
    for (const S each : lane) before = each > before ? each : before;
    return before;
  }

  /// Numbers times a factor.
  static void multiply(S* x, Size count, S factor) {
    for (Size at = 0; at < count; at += lanes) V::store(x + at, V::multiply(V::load(x + at), V::broadcast(factor)));
  }

  /// Turns scores into weights, and adds these to totals, a lane each.
  static void exponentiate(S* scores, Size count, S limit, S* totals) {
    Register total = V::load(totals);
    for (Size j = 0; j < count; j += lanes) {
      const Register weights = power(V::subtract(V::load(scores + j), V::broadcast(limit)));
      V::store(scores + j, weights);
      total = V::add(total, weights);
    }
    V::store(totals, total);
  }

  static S power_of_two(S x) { return ::power_of_two(x); }

 private:
  static __attribute__((always_inline)) Register power(Register x) {
    using P = Powers<S>;
    x = greater(V::broadcast(P::least), x);
    const Register shifted = V::add(x, V::broadcast(P::large));
    const Register f = V::subtract(x, V::subtract(shifted, V::broadcast(P::large)));
    Register p = V::broadcast(P::polynomial[0]);
#pragma GCC unroll 11
    for (int term = 1; term < P::terms; ++term) p = V::multiply_add(p, f, V::broadcast(P::polynomial[term]));
    return V::multiply(exponent(shifted), V::multiply_add(p, f, V::broadcast(1)));
  }
};

}  // namespace
