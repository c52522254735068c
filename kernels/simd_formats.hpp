// Simd<T> for number formats that are narrower than Sum<T>. load widens elements to a register of Simd<Sum<T>>, which
// computes; store narrows them again. simd.hpp includes this at its end.
#pragma once

#include <cstring>

#include "formats.hpp"
#include "simd.hpp"

namespace {

// Halves: as many elements of 16 bits as a register has floats. Simd<std::int32_t>: as many sums of products of int8.
#if defined(__AVX512F__)

constexpr __mmask16 all = 0xffff;  // without masks, g++ 12 warns: parts not initialised

struct Halves {
  using Register = __m256i;
  static Register load(const void* from) { return _mm256_loadu_si256(static_cast<const Register*>(from)); }
  static void store(void* to, Register x) { _mm256_storeu_si256(static_cast<Register*>(to), x); }
  static void stream(void* to, Register x) { _mm256_stream_si256(static_cast<Register*>(to), x); }
  static __m512i above_zeros(Register x) {
    return _mm512_maskz_slli_epi32(all, _mm512_maskz_cvtepu16_epi32(all, x), 16);
  }
  static Register upper(__m512i x) { return _mm512_maskz_cvtepi32_epi16(all, _mm512_maskz_srli_epi32(all, x, 16)); }
  static __m512 of_float16(Register x) { return _mm512_maskz_cvtph_ps(all, x); }
  static Register to_float16(__m512 x) { return _mm512_maskz_cvtps_ph(all, x, _MM_FROUND_TO_NEAREST_INT); }
};

template <>
struct Simd<std::int32_t> {
  using Register = __m512i;
  static constexpr std::int64_t lanes = 16;
  static Register load(const std::int32_t* from) { return _mm512_loadu_si512(from); }
  static void store(std::int32_t* to, Register x) { _mm512_storeu_si512(to, x); }
  static Register load_part(const std::int32_t* from, std::int64_t count) {
    return _mm512_maskz_loadu_epi32(static_cast<__mmask16>((1u << count) - 1), from);
  }
  static void store_part(std::int32_t* to, Register x, std::int64_t count) {
    _mm512_mask_storeu_epi32(to, static_cast<__mmask16>((1u << count) - 1), x);
  }
  static Register broadcast(std::int32_t x) { return _mm512_set1_epi32(x); }
  static Register add(Register x, Register y) { return _mm512_add_epi32(x, y); }
  static Register multiply_pairs(Register x, Register y) { return _mm512_madd_epi16(x, y); }
  static Register lower_halves(Register x) { return _mm512_and_si512(x, broadcast(0xffff)); }
  static Register widen(const void* bytes) {
    return _mm512_maskz_cvtepi8_epi32(all, _mm_loadu_si128(static_cast<const __m128i*>(bytes)));
  }
  static Register widen_to_pairs(const void* bytes) {
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256(static_cast<const __m256i*>(bytes)));
  }
};

#elif defined(__AVX2__) && defined(__FMA__)

struct Halves {
  using Register = __m128i;
  static Register load(const void* from) { return _mm_loadu_si128(static_cast<const Register*>(from)); }
  static void store(void* to, Register x) { _mm_storeu_si128(static_cast<Register*>(to), x); }
  static void stream(void* to, Register x) { _mm_stream_si128(static_cast<Register*>(to), x); }
  static __m256i above_zeros(Register x) { return _mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16); }
  static Register upper(__m256i x) {
    const __m256i low = _mm256_srai_epi32(x, 16);  // with copies of the sign above, which packing does not change
    return _mm_packs_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
  }
#if defined(__F16C__)
  static __m256 of_float16(Register x) { return _mm256_cvtph_ps(x); }
  static Register to_float16(__m256 x) { return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT); }
#endif
};

template <>
struct Simd<std::int32_t> {
  using Register = __m256i;
  static constexpr std::int64_t lanes = 8;
  static Register load(const std::int32_t* from) { return _mm256_loadu_si256(reinterpret_cast<const Register*>(from)); }
  static void store(std::int32_t* to, Register x) { _mm256_storeu_si256(reinterpret_cast<Register*>(to), x); }
  static Register load_part(const std::int32_t* from, std::int64_t count) {
    return _mm256_maskload_epi32(from, Simd<float>::first(count));
  }
  static void store_part(std::int32_t* to, Register x, std::int64_t count) {
    _mm256_maskstore_epi32(to, Simd<float>::first(count), x);
  }
  static Register broadcast(std::int32_t x) { return _mm256_set1_epi32(x); }
  static Register add(Register x, Register y) { return _mm256_add_epi32(x, y); }
  static Register multiply_pairs(Register x, Register y) { return _mm256_madd_epi16(x, y); }
  static Register lower_halves(Register x) { return _mm256_and_si256(x, broadcast(0xffff)); }
  static Register widen(const void* bytes) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(bytes)));
  }
  static Register widen_to_pairs(const void* bytes) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(static_cast<const __m128i*>(bytes)));
  }
};

#else

struct Halves {  // in the lower half of a register
  using Register = __m128i;
  static Register load(const void* from) { return _mm_loadl_epi64(static_cast<const Register*>(from)); }
  static void store(void* to, Register x) { _mm_storel_epi64(static_cast<Register*>(to), x); }
  static void stream(void* to, Register x) { _mm_stream_si64(static_cast<long long*>(to), _mm_cvtsi128_si64(x)); }
  static __m128i above_zeros(Register x) { return _mm_unpacklo_epi16(_mm_setzero_si128(), x); }
  static Register upper(__m128i x) {
    const __m128i low = _mm_srai_epi32(x, 16);  // with copies of the sign above, which packing does not change
    return _mm_packs_epi32(low, low);
  }
};

template <>
struct Simd<std::int32_t> {
  using Register = __m128i;
  static constexpr std::int64_t lanes = 4;
  static Register load(const std::int32_t* from) { return _mm_loadu_si128(reinterpret_cast<const Register*>(from)); }
  static void store(std::int32_t* to, Register x) { _mm_storeu_si128(reinterpret_cast<Register*>(to), x); }
  static Register load_part(const std::int32_t* from, std::int64_t count) {
    std::int32_t lane[lanes] = {};
    for (std::int64_t i = 0; i < count; ++i) lane[i] = from[i];
    return load(lane);
  }
  static void store_part(std::int32_t* to, Register x, std::int64_t count) {
    std::int32_t lane[lanes];
    store(lane, x);
    for (std::int64_t i = 0; i < count; ++i) to[i] = lane[i];
  }
  static Register broadcast(std::int32_t x) { return _mm_set1_epi32(x); }
  static Register add(Register x, Register y) { return _mm_add_epi32(x, y); }
  static Register multiply_pairs(Register x, Register y) { return _mm_madd_epi16(x, y); }
  static Register lower_halves(Register x) { return _mm_and_si128(x, broadcast(0xffff)); }
  static Register widen(const void* bytes) {
    std::int32_t four;
    std::memcpy(&four, bytes, sizeof four);
    const __m128i x = _mm_cvtsi32_si128(four), twice = _mm_unpacklo_epi8(x, x);
    return _mm_srai_epi32(_mm_unpacklo_epi16(twice, twice), 24);
  }
  static Register widen_to_pairs(const void* bytes) {
    const __m128i x = _mm_loadl_epi64(static_cast<const __m128i*>(bytes));
    return _mm_srai_epi16(_mm_unpacklo_epi8(x, x), 8);
  }
};

#endif

template <>
struct Simd<BFloat16> : Simd<float> {
  using Simd<float>::load;
  using Simd<float>::store;
  using Simd<float>::load_part;
  using Words = std::uint32_t __attribute__((vector_size(sizeof(Register))));

  static Register load(const BFloat16* from) { return widened(Halves::load(from)); }
  static void store(BFloat16* to, Register x) { Halves::store(to, narrowed(x)); }
  static Register load_part(const BFloat16* from, std::int64_t count) {
    BFloat16 lane[lanes] = {};
    for (std::int64_t i = 0; i < count; ++i) lane[i] = from[i];
    return load(lane);
  }

  static Register widened(Halves::Register x) { return reinterpret_cast<Register>(Halves::above_zeros(x)); }
  /// As narrow() does it: VCVTNEPS2BF16 would take subnormal numbers for zero.
  static Halves::Register narrowed(Register x) {
    const auto bits = reinterpret_cast<Words>(x), rounded = bits + 0x7fff + (bits >> 16 & 1);
    return Halves::upper(reinterpret_cast<Simd<std::int32_t>::Register>(x != x ? bits | 0x400000 : rounded));
  }
};

template <>
struct Simd<Float16> : Simd<float> {
  using Simd<float>::load;
  using Simd<float>::store;
  using Simd<float>::load_part;
  using Integer = std::int32_t;
  using Integers = Integer __attribute__((vector_size(sizeof(Register))));

  static Register load(const Float16* from) { return widened(Halves::load(from)); }
  static void store(Float16* to, Register x) { Halves::store(to, narrowed(x)); }
  static void stream(Float16* to, Register x) { Halves::stream(to, narrowed(x)); }
  static Register load_part(const Float16* from, std::int64_t count) {
    Float16 lane[lanes] = {};
    for (std::int64_t i = 0; i < count; ++i) lane[i] = from[i];
    return load(lane);
  }

#if defined(__AVX512F__) || defined(__F16C__)
  static Register widened(Halves::Register x) { return Halves::of_float16(x); }
  static Halves::Register narrowed(Register x) { return Halves::to_float16(x); }
#else  // as widen() and narrow() do it
  static Register widened(Halves::Register x) {
    const auto bits = reinterpret_cast<Integers>(Halves::above_zeros(x)) >> 3 & Integer(0x8fffe000);
    const auto infinite = ((bits & 0xf800000) == 0xf800000) & 0x7f800000;
    const auto wide = reinterpret_cast<Integers>(reinterpret_cast<Register>(bits) * 0x1p112f);
    return reinterpret_cast<Register>(wide | infinite);
  }
  static Halves::Register narrowed(Register x) {
    const auto bits = reinterpret_cast<Integers>(x), magnitude = bits & 0x7fffffff;
    const auto limited = magnitude < 0x47800000 ? magnitude : Integers{} + 0x47800000, power = limited & 0x7f800000;
    const auto large = (power > 0x38800000 ? power : Integers{} + 0x38800000) + (13 << 23);
    const auto sum = reinterpret_cast<Register>(limited) + reinterpret_cast<Register>(large);
    const auto digits = reinterpret_cast<Integers>(sum) - large, exponent = (large - (126 << 23)) >> 13;
    const auto nan = (magnitude > 0x7f800000) & 0x7e00, half = (exponent + digits) | nan | (bits >> 16 & 0x8000);
    return Halves::upper(reinterpret_cast<Simd<std::int32_t>::Register>(half << 16));
  }
#endif
};

template <>
struct Simd<std::int8_t> : Simd<std::int32_t> {
  using Simd<std::int32_t>::load;

  static Register load(const std::int8_t* from) { return widen(from); }
  /// x and y as load and broadcast give them: the lower halves hold their whole value.
  static Register multiply_add(Register x, Register y, Register z) {
    return add(multiply_pairs(lower_halves(x), y), z);
  }
};

/// The sum of a register's lanes. The upper half is added to the lower one, then a quarter, and so on.
template <typename T>
Sum<T> sum_of_lanes(typename Simd<T>::Register x) {
  Sum<T> lane[Simd<T>::lanes];
  Simd<Sum<T>>::store(lane, x);
  for (std::int64_t half = Simd<T>::lanes / 2; half > 0; half /= 2) {
    for (std::int64_t i = 0; i < half; ++i) lane[i] += lane[i + half];
  }
  return lane[0];
}

}  // namespace
