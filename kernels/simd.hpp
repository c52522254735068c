// Simd<T>: a vector register of float or double and its intrinsics, in the widest instruction set that the file is
// compiled for. simd_formats.hpp has the narrower formats. Everything is in an unnamed namespace. One program holds
// this header compiled for several instruction sets, and the linker must never replace one version by another.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace {

template <typename T>
struct Simd;

#if defined(__AVX512F__)

template <>
struct Simd<float> {
  using Register = __m512;
  static constexpr std::int64_t lanes = 16;
  static Register load(const float* from) { return _mm512_loadu_ps(from); }
  static void store(float* to, Register x) { _mm512_storeu_ps(to, x); }
  static Register load_part(const float* from, std::int64_t count) {
    return _mm512_maskz_loadu_ps((1u << count) - 1, from);
  }
  static void store_part(float* to, Register x, std::int64_t count) { _mm512_mask_storeu_ps(to, (1u << count) - 1, x); }
  static void stream(float* to, Register x) { _mm512_stream_ps(to, x); }
  static Register broadcast(float x) { return _mm512_set1_ps(x); }
  static Register add(Register x, Register y) { return _mm512_add_ps(x, y); }
  static Register subtract(Register x, Register y) { return _mm512_sub_ps(x, y); }
  static Register multiply(Register x, Register y) { return _mm512_mul_ps(x, y); }
  static Register divide(Register x, Register y) { return _mm512_div_ps(x, y); }
  static Register root(Register x) { return _mm512_maskz_sqrt_ps(0xffff, x); }
  static Register multiply_add(Register x, Register y, Register z) { return _mm512_fmadd_ps(x, y, z); }
  static Register subtract_product(Register z, Register x, Register y) { return _mm512_fnmadd_ps(x, y, z); }
  static void interleave(Register x, Register y, Register& low, Register& high) {
    low = _mm512_permutex2var_ps(x, _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), y);
    high =
        _mm512_permutex2var_ps(x, _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31), y);
  }
};

template <>
struct Simd<double> {
  using Register = __m512d;
  static constexpr std::int64_t lanes = 8;
  static Register load(const double* from) { return _mm512_loadu_pd(from); }
  static void store(double* to, Register x) { _mm512_storeu_pd(to, x); }
  static Register load_part(const double* from, std::int64_t count) {
    return _mm512_maskz_loadu_pd((1u << count) - 1, from);
  }
  static void store_part(double* to, Register x, std::int64_t count) {
    _mm512_mask_storeu_pd(to, (1u << count) - 1, x);
  }
  static void stream(double* to, Register x) { _mm512_stream_pd(to, x); }
  static Register broadcast(double x) { return _mm512_set1_pd(x); }
  static Register add(Register x, Register y) { return _mm512_add_pd(x, y); }
  static Register subtract(Register x, Register y) { return _mm512_sub_pd(x, y); }
  static Register multiply(Register x, Register y) { return _mm512_mul_pd(x, y); }
  static Register divide(Register x, Register y) { return _mm512_div_pd(x, y); }
  static Register root(Register x) { return _mm512_maskz_sqrt_pd(0xff, x); }
  static Register multiply_add(Register x, Register y, Register z) { return _mm512_fmadd_pd(x, y, z); }
  static Register subtract_product(Register z, Register x, Register y) { return _mm512_fnmadd_pd(x, y, z); }
  static void interleave(Register x, Register y, Register& low, Register& high) {
    low = _mm512_permutex2var_pd(x, _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), y);
    high = _mm512_permutex2var_pd(x, _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15), y);
  }
};

#elif defined(__AVX2__) && defined(__FMA__)

template <>
struct Simd<float> {
  using Register = __m256;
  static constexpr std::int64_t lanes = 8;
  static Register load(const float* from) { return _mm256_loadu_ps(from); }
  static void store(float* to, Register x) { _mm256_storeu_ps(to, x); }
  static Register load_part(const float* from, std::int64_t count) { return _mm256_maskload_ps(from, first(count)); }
  static void store_part(float* to, Register x, std::int64_t count) { _mm256_maskstore_ps(to, first(count), x); }
  static __m256i first(std::int64_t count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static void stream(float* to, Register x) { _mm256_stream_ps(to, x); }
  static Register broadcast(float x) { return _mm256_set1_ps(x); }
  static Register add(Register x, Register y) { return _mm256_add_ps(x, y); }
  static Register subtract(Register x, Register y) { return _mm256_sub_ps(x, y); }
  static Register multiply(Register x, Register y) { return _mm256_mul_ps(x, y); }
  static Register divide(Register x, Register y) { return _mm256_div_ps(x, y); }
  static Register root(Register x) { return _mm256_sqrt_ps(x); }
  static Register multiply_add(Register x, Register y, Register z) { return _mm256_fmadd_ps(x, y, z); }
  static Register subtract_product(Register z, Register x, Register y) { return _mm256_fnmadd_ps(x, y, z); }
  static void interleave(Register x, Register y, Register& low, Register& high) {
    const Register even = _mm256_unpacklo_ps(x, y), odd = _mm256_unpackhi_ps(x, y);  // in each half by itself
    low = _mm256_permute2f128_ps(even, odd, 0x20);
    high = _mm256_permute2f128_ps(even, odd, 0x31);
  }
};

template <>
struct Simd<double> {
  using Register = __m256d;
  static constexpr std::int64_t lanes = 4;
  static Register load(const double* from) { return _mm256_loadu_pd(from); }
  static void store(double* to, Register x) { _mm256_storeu_pd(to, x); }
  static Register load_part(const double* from, std::int64_t count) { return _mm256_maskload_pd(from, first(count)); }
  static void store_part(double* to, Register x, std::int64_t count) { _mm256_maskstore_pd(to, first(count), x); }
  static __m256i first(std::int64_t count) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
  }
  static void stream(double* to, Register x) { _mm256_stream_pd(to, x); }
  static Register broadcast(double x) { return _mm256_set1_pd(x); }
  static Register add(Register x, Register y) { return _mm256_add_pd(x, y); }
  static Register subtract(Register x, Register y) { return _mm256_sub_pd(x, y); }
  static Register multiply(Register x, Register y) { return _mm256_mul_pd(x, y); }
  static Register divide(Register x, Register y) { return _mm256_div_pd(x, y); }
  static Register root(Register x) { return _mm256_sqrt_pd(x); }
  static Register multiply_add(Register x, Register y, Register z) { return _mm256_fmadd_pd(x, y, z); }
  static Register subtract_product(Register z, Register x, Register y) { return _mm256_fnmadd_pd(x, y, z); }
  static void interleave(Register x, Register y, Register& low, Register& high) {
    const Register even = _mm256_unpacklo_pd(x, y), odd = _mm256_unpackhi_pd(x, y);  // in each half by itself
    low = _mm256_permute2f128_pd(even, odd, 0x20);
    high = _mm256_permute2f128_pd(even, odd, 0x31);
  }
};

#else  // SSE2, which every x86-64 has; it multiplies and adds in two instructions

template <>
struct Simd<float> {
  using Register = __m128;
  static constexpr std::int64_t lanes = 4;
  static Register load(const float* from) { return _mm_loadu_ps(from); }
  static void store(float* to, Register x) { _mm_storeu_ps(to, x); }
  static Register load_part(const float* from, std::int64_t count) {
    float lane[lanes] = {};
    for (std::int64_t i = 0; i < count; ++i) lane[i] = from[i];
    return load(lane);
  }
  static void store_part(float* to, Register x, std::int64_t count) {
    float lane[lanes];
    store(lane, x);
    for (std::int64_t i = 0; i < count; ++i) to[i] = lane[i];
  }
  static void stream(float* to, Register x) { _mm_stream_ps(to, x); }
  static Register broadcast(float x) { return _mm_set1_ps(x); }
  static Register add(Register x, Register y) { return _mm_add_ps(x, y); }
  static Register subtract(Register x, Register y) { return _mm_sub_ps(x, y); }
  static Register multiply(Register x, Register y) { return _mm_mul_ps(x, y); }
  static Register divide(Register x, Register y) { return _mm_div_ps(x, y); }
  static Register root(Register x) { return _mm_sqrt_ps(x); }
  static Register multiply_add(Register x, Register y, Register z) { return _mm_add_ps(_mm_mul_ps(x, y), z); }
  static Register subtract_product(Register z, Register x, Register y) { return _mm_sub_ps(z, _mm_mul_ps(x, y)); }
  static void interleave(Register x, Register y, Register& low, Register& high) {
    low = _mm_unpacklo_ps(x, y);
    high = _mm_unpackhi_ps(x, y);
  }
};

template <>
struct Simd<double> {
  using Register = __m128d;
  static constexpr std::int64_t lanes = 2;
  static Register load(const double* from) { return _mm_loadu_pd(from); }
  static void store(double* to, Register x) { _mm_storeu_pd(to, x); }
  static Register load_part(const double* from, std::int64_t count) {
    double lane[lanes] = {};
    for (std::int64_t i = 0; i < count; ++i) lane[i] = from[i];
    return load(lane);
  }
  static void store_part(double* to, Register x, std::int64_t count) {
    double lane[lanes];
    store(lane, x);
    for (std::int64_t i = 0; i < count; ++i) to[i] = lane[i];
  }
  static void stream(double* to, Register x) { _mm_stream_pd(to, x); }
  static Register broadcast(double x) { return _mm_set1_pd(x); }
  static Register add(Register x, Register y) { return _mm_add_pd(x, y); }
  static Register subtract(Register x, Register y) { return _mm_sub_pd(x, y); }
  static Register multiply(Register x, Register y) { return _mm_mul_pd(x, y); }
  static Register divide(Register x, Register y) { return _mm_div_pd(x, y); }
  static Register root(Register x) { return _mm_sqrt_pd(x); }
  static Register multiply_add(Register x, Register y, Register z) { return _mm_add_pd(_mm_mul_pd(x, y), z); }
  static Register subtract_product(Register z, Register x, Register y) { return _mm_sub_pd(z, _mm_mul_pd(x, y)); }
  static void interleave(Register x, Register y, Register& low, Register& high) {
    low = _mm_unpacklo_pd(x, y);
    high = _mm_unpackhi_pd(x, y);
  }
};

#endif

}  // namespace

#include "simd_formats.hpp"
