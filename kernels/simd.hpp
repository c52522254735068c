// Simd<T>: a vector register of float or double and its intrinsics, in the widest instruction set that the
// file is compiled for. Everything is in an unnamed namespace: one program holds this header compiled for
// several instruction sets, and the linker must never replace the one by the other.
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
  static void stream(float* to, Register x) { _mm512_stream_ps(to, x); }
  static Register broadcast(float x) { return _mm512_set1_ps(x); }
  static Register add(Register x, Register y) { return _mm512_add_ps(x, y); }
  static Register multiply_add(Register x, Register y, Register z) { return _mm512_fmadd_ps(x, y, z); }
};

template <>
struct Simd<double> {
  using Register = __m512d;
  static constexpr std::int64_t lanes = 8;
  static Register load(const double* from) { return _mm512_loadu_pd(from); }
  static void store(double* to, Register x) { _mm512_storeu_pd(to, x); }
  static void stream(double* to, Register x) { _mm512_stream_pd(to, x); }
  static Register broadcast(double x) { return _mm512_set1_pd(x); }
  static Register add(Register x, Register y) { return _mm512_add_pd(x, y); }
  static Register multiply_add(Register x, Register y, Register z) { return _mm512_fmadd_pd(x, y, z); }
};

#elif defined(__AVX2__) && defined(__FMA__)

template <>
struct Simd<float> {
  using Register = __m256;
  static constexpr std::int64_t lanes = 8;
  static Register load(const float* from) { return _mm256_loadu_ps(from); }
  static void store(float* to, Register x) { _mm256_storeu_ps(to, x); }
  static void stream(float* to, Register x) { _mm256_stream_ps(to, x); }
  static Register broadcast(float x) { return _mm256_set1_ps(x); }
  static Register add(Register x, Register y) { return _mm256_add_ps(x, y); }
  static Register multiply_add(Register x, Register y, Register z) { return _mm256_fmadd_ps(x, y, z); }
};

template <>
struct Simd<double> {
  using Register = __m256d;
  static constexpr std::int64_t lanes = 4;
  static Register load(const double* from) { return _mm256_loadu_pd(from); }
  static void store(double* to, Register x) { _mm256_storeu_pd(to, x); }
  static void stream(double* to, Register x) { _mm256_stream_pd(to, x); }
  static Register broadcast(double x) { return _mm256_set1_pd(x); }
  static Register add(Register x, Register y) { return _mm256_add_pd(x, y); }
  static Register multiply_add(Register x, Register y, Register z) { return _mm256_fmadd_pd(x, y, z); }
};

#else  // SSE2, which every x86-64 has; it multiplies and adds in two instructions

template <>
struct Simd<float> {
  using Register = __m128;
  static constexpr std::int64_t lanes = 4;
  static Register load(const float* from) { return _mm_loadu_ps(from); }
  static void store(float* to, Register x) { _mm_storeu_ps(to, x); }
  static void stream(float* to, Register x) { _mm_stream_ps(to, x); }
  static Register broadcast(float x) { return _mm_set1_ps(x); }
  static Register add(Register x, Register y) { return _mm_add_ps(x, y); }
  static Register multiply_add(Register x, Register y, Register z) { return _mm_add_ps(_mm_mul_ps(x, y), z); }
};

template <>
struct Simd<double> {
  using Register = __m128d;
  static constexpr std::int64_t lanes = 2;
  static Register load(const double* from) { return _mm_loadu_pd(from); }
  static void store(double* to, Register x) { _mm_storeu_pd(to, x); }
  static void stream(double* to, Register x) { _mm_stream_pd(to, x); }
  static Register broadcast(double x) { return _mm_set1_pd(x); }
  static Register add(Register x, Register y) { return _mm_add_pd(x, y); }
  static Register multiply_add(Register x, Register y, Register z) { return _mm_add_pd(_mm_mul_pd(x, y), z); }
};

#endif

}  // namespace
