// Dot products for avx.cpp. A lane of 32 bits holds the elements of several steps of p. One instruction multiplies them
// all and adds the products. Sums of int8 are exact modulo 2^32.
#pragma once

#include "../../simd.hpp"

namespace {

/// Two elements of int8, 16 bits each.
struct Pair {
  std::int32_t bits;
};

/// Two elements of bfloat16, for AVX-512 BF16. It treats subnormal numbers and results as zeros.
struct BFloat16Pair {
  std::int32_t bits;
};

/// Four elements of int8, 8 bits each, for AVX-512 VNNI. It multiplies unsigned by signed numbers, so 128 is added to
/// those of a. To make up for it, sums begin with -128 times the sums of columns of b. These stand before a panel's
/// first row.
struct Quad {
  std::int32_t bits;
};

template <>
struct SumOf<Pair> {
  using Type = std::int32_t;
};
template <>
struct SumOf<BFloat16Pair> {
  using Type = float;
};
template <>
struct SumOf<Quad> {
  using Type = std::int32_t;
};

struct Words : Simd<std::int32_t> {
  using Simd<std::int32_t>::broadcast;
  using Vector = std::uint32_t __attribute__((vector_size(sizeof(Register))));

  /// A register's bytes, as numbers of 32 bits.
  static Vector widened(const std::int8_t* from) { return reinterpret_cast<Vector>(widen(from)); }
  static void interleave(Register x, Register y, Register& low, Register& high) {
    using Floats = Simd<float>::Register;
    Floats first, second;
    Simd<float>::interleave(reinterpret_cast<Floats>(x), reinterpret_cast<Floats>(y), first, second);
    low = reinterpret_cast<Register>(first), high = reinterpret_cast<Register>(second);
  }
};

/// Packed elements of any format, as numbers of 32 bits.
template <typename P>
struct Packed : Words {
  static Register load(const P* from) { return Words::load(&from->bits); }
  static void store(P* to, Register x) { Words::store(&to->bits, x); }
  static Register broadcast(P x) { return Words::broadcast(x.bits); }
};

template <>
struct Simd<Pair> : Packed<Pair> {
  static Register multiply_add(Register x, Register y, Register z) { return add(multiply_pairs(x, y), z); }

  /// Two elements of a row in each lane.
  static Register of_row(const std::int8_t* from) { return widen_to_pairs(from); }
  /// An element of each of two rows in each lane.
  static Register of_rows(const std::int8_t* from, std::int64_t stride) {
    return reinterpret_cast<Register>((widened(from) & 0xffff) | widened(from + stride) << 16);
  }
  static Pair of_elements(const std::int8_t* from, std::int64_t count) {
    return {(from[0] & 0xffff) | (count > 1 ? from[1] * 0x10000 : 0)};
  }
};

#if defined(__AVX512F__)

/// Whether this CPU multiplies pairs of bfloat16 faster than floats. AMD's (Zen 4, Zen 5) issue VDPBF16PS as often as
/// multiply-adds of floats, for twice the products. Intel's (Cooper Lake, Sapphire Rapids) issue it a quarter as often,
/// for half the products. No CPU flag tells, so the maker decides.
inline bool has_fast_pairs_of_bfloat16() { return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_is("amd"); }

template <>
struct Simd<BFloat16Pair> : Packed<BFloat16Pair> {
  using Sums = Simd<float>::Register;
  [[gnu::target("avx512bf16")]] static Sums multiply_add(Register x, Register y, Sums z) {
    return _mm512_dpbf16_ps(z, reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(y));
  }

  static Register of_row(const BFloat16* from) { return _mm512_loadu_si512(from); }
  static Register of_rows(const BFloat16* from, std::int64_t stride) {
    const Register low = _mm512_maskz_cvtepu16_epi32(all, Halves::load(from));
    return _mm512_or_si512(low, Halves::above_zeros(Halves::load(from + stride)));
  }
  static BFloat16Pair of_elements(const BFloat16* from, std::int64_t count) {
    const std::uint32_t second = count > 1 ? from[1].bits : 0;
    return {static_cast<std::int32_t>(second << 16 | from[0].bits)};
  }
};

template <>
struct Simd<Quad> : Packed<Quad> {
  [[gnu::target("avx512vnni")]] static Register multiply_add(Register x, Register y, Register z) {
    return _mm512_dpbusd_epi32(z, x, y);
  }

  static Register of_row(const std::int8_t* from) {
    return _mm512_xor_si512(_mm512_loadu_si512(from), _mm512_set1_epi8(-128));
  }
  static Register of_rows(const std::int8_t* from, std::int64_t stride) {
    const Vector low = (widened(from) & 0xff) | (widened(from + stride) & 0xff) << 8;
    return reinterpret_cast<Register>(low | (widened(from + 2 * stride) & 0xff) << 16 |
                                      widened(from + 3 * stride) << 24);
  }
  static Quad of_elements(const std::int8_t* from, std::int64_t count) {
    std::uint32_t bits = 0;
    for (std::int64_t p = 0; p < count; ++p) bits |= std::uint32_t(from[p] + 128) << 8 * p;
    return {static_cast<std::int32_t>(bits)};
  }
  /// -128 times the sum of the elements in each lane.
  static Register offset_of(Register x) {
    return multiply_pairs(_mm512_maddubs_epi16(_mm512_set1_epi8(1), x), _mm512_set1_epi16(-128));
  }
};
#endif

}  // namespace
