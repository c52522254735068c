// The instructions by which avx moves elements: they turn a square in registers, and write lines past the cache.
#pragma once

#include <immintrin.h>

#include "squares.hpp"

namespace {

constexpr Size piece = 16;  ///< bytes within which instructions interleave elements

/// Registers of pieces. Elements of two registers are interleaved in each piece by itself: those in the lower halves,
/// or those in the upper ones.
#if defined(__AVX512BW__)

struct Register {  // without masks, g++ 12 warns: parts not initialised
  using Bits = __m512i;
  static Bits load(const char* from, Size apart) {
    Bits x = _mm512_castsi128_si512(piece_at(from));
    x = _mm512_inserti32x4(x, piece_at(from + apart), 1);
    x = _mm512_inserti32x4(x, piece_at(from + 2 * apart), 2);
    return _mm512_inserti32x4(x, piece_at(from + 3 * apart), 3);
  }
  static __m128i piece_at(const char* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
  static void store(void* to, Bits x) { _mm512_storeu_si512(to, x); }
  static void stream(void* to, Bits x) { _mm512_stream_si512(static_cast<Bits*>(to), x); }
  static Bits whole(const void* from) { return _mm512_loadu_si512(from); }

  template <Size bytes>
  static Bits low(Bits x, Bits y) {
    if constexpr (bytes == 1) return _mm512_unpacklo_epi8(x, y);
    if constexpr (bytes == 2) return _mm512_unpacklo_epi16(x, y);
    if constexpr (bytes == 4) return _mm512_maskz_unpacklo_epi32(0xffff, x, y);
    if constexpr (bytes == 8) return _mm512_maskz_unpacklo_epi64(0xff, x, y);
  }
  template <Size bytes>
  static Bits high(Bits x, Bits y) {
    if constexpr (bytes == 1) return _mm512_unpackhi_epi8(x, y);
    if constexpr (bytes == 2) return _mm512_unpackhi_epi16(x, y);
    if constexpr (bytes == 4) return _mm512_maskz_unpackhi_epi32(0xffff, x, y);
    if constexpr (bytes == 8) return _mm512_maskz_unpackhi_epi64(0xff, x, y);
  }
};

#elif defined(__AVX2__)

struct Register {
  using Bits = __m256i;
  static Bits load(const char* from, Size apart) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(piece_at(from)), piece_at(from + apart), 1);
  }
  static __m128i piece_at(const char* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
  static void store(void* to, Bits x) { _mm256_storeu_si256(static_cast<Bits*>(to), x); }
  static void stream(void* to, Bits x) { _mm256_stream_si256(static_cast<Bits*>(to), x); }
  static Bits whole(const void* from) { return _mm256_loadu_si256(static_cast<const Bits*>(from)); }

  template <Size bytes>
  static Bits low(Bits x, Bits y) {
    if constexpr (bytes == 1) return _mm256_unpacklo_epi8(x, y);
    if constexpr (bytes == 2) return _mm256_unpacklo_epi16(x, y);
    if constexpr (bytes == 4) return _mm256_unpacklo_epi32(x, y);
    if constexpr (bytes == 8) return _mm256_unpacklo_epi64(x, y);
  }
  template <Size bytes>
  static Bits high(Bits x, Bits y) {
    if constexpr (bytes == 1) return _mm256_unpackhi_epi8(x, y);
    if constexpr (bytes == 2) return _mm256_unpackhi_epi16(x, y);
    if constexpr (bytes == 4) return _mm256_unpackhi_epi32(x, y);
    if constexpr (bytes == 8) return _mm256_unpackhi_epi64(x, y);
  }
};

#else  // SSE2

struct Register {
  using Bits = __m128i;
  static Bits load(const char* from, Size) { return whole(from); }
  static void store(void* to, Bits x) { _mm_storeu_si128(static_cast<Bits*>(to), x); }
  static void stream(void* to, Bits x) { _mm_stream_si128(static_cast<Bits*>(to), x); }
  static Bits whole(const void* from) { return _mm_loadu_si128(static_cast<const Bits*>(from)); }

  template <Size bytes>
  static Bits low(Bits x, Bits y) {
    if constexpr (bytes == 1) return _mm_unpacklo_epi8(x, y);
    if constexpr (bytes == 2) return _mm_unpacklo_epi16(x, y);
    if constexpr (bytes == 4) return _mm_unpacklo_epi32(x, y);
    if constexpr (bytes == 8) return _mm_unpacklo_epi64(x, y);
  }
  template <Size bytes>
  static Bits high(Bits x, Bits y) {
    if constexpr (bytes == 1) return _mm_unpackhi_epi8(x, y);
    if constexpr (bytes == 2) return _mm_unpackhi_epi16(x, y);
    if constexpr (bytes == 4) return _mm_unpackhi_epi32(x, y);
    if constexpr (bytes == 8) return _mm_unpackhi_epi64(x, y);
  }
};

#endif

struct Registers {
  static constexpr bool past_the_cache = true;
  /// Whether to prefetch what comes next of a. Intel's cores (those with AMX) read so many rows quicker by themselves:
  /// without it they had 1.2 times the rate, and with wider pieces 1.4 times. AMD's (Zen 5) gain from it.
  static bool prefetches() { return !__builtin_cpu_is("intel"); }
  using Bits = Register::Bits;

  /// Turns a square, some columns of `from` at a time: as many as a piece has elements. So many rows of `from` fill a
  /// piece of each of as many registers, other rows the next pieces. Then every piece is a square by itself. Rows r and
  /// r + half are interleaved, as often as it takes to halve the square down to one row: each time an element's row
  /// gives a digit of its number to its column, and its column one to its row.
  template <typename T>
  static void turn(const T* from, Size from_apart, T* to, Size to_apart) {
    constexpr Size count = piece / sizeof(T), wide = sizeof(Bits) / sizeof(T);
    for (Size i = 0; i < side<T>; i += count) {
#pragma GCC unroll 4
      for (Size j = 0; j < side<T>; j += wide) {
        Bits x[count], y[count];
#pragma GCC unroll 16
        for (Size r = 0; r < count; ++r) {
          const T* const row = from + (j + r) * from_apart + i;
          x[r] = Register::load(reinterpret_cast<const char*>(row), count * from_apart * Size(sizeof(T)));
        }
#pragma GCC unroll 4
        for (Size round = 1; round < count; round *= 2) {
#pragma GCC unroll 8
          for (Size r = 0; r < count / 2; ++r) {
            y[2 * r] = Register::low<sizeof(T)>(x[r], x[r + count / 2]);
            y[2 * r + 1] = Register::high<sizeof(T)>(x[r], x[r + count / 2]);
          }
#pragma GCC unroll 16
          for (Size r = 0; r < count; ++r) x[r] = y[r];
        }
#pragma GCC unroll 16
        for (Size r = 0; r < count; ++r) Register::store(to + (i + r) * to_apart + j, x[r]);
      }
    }
  }

  /// Writes a line past the cache.
  template <typename T>
  static void put_line(T* to, const T* from) {
    for (Size at = 0; at < side<T>; at += sizeof(Bits) / sizeof(T)) {
      Register::stream(to + at, Register::whole(from + at));
    }
  }
  static void finish() { _mm_sfence(); }  // other threads see streamed stores only after this
};

}  // namespace
