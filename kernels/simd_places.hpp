// The lanes of a vector register by their places: moved up, or the last one in all of them, for prefix sums. Everything
// is in an unnamed namespace, for the reason that simd.hpp gives.
#pragma once

#include "simd.hpp"

namespace {

#if defined(__AVX512F__)
using Bits = __m512i;

/// The words of a register so many places further up, with zeros below.
template <int places>
Bits words_moved_up(Bits x) {
  return _mm512_maskz_alignr_epi32(0xffff, x, Bits(), 16 - places);  // without a mask, g++ 12 warns
}
/// The last so many words of a register, again and again.
template <int words>
Bits last_words(Bits x) {
  const Bits places = words == 1 ? _mm512_set1_epi32(15) : _mm512_set1_epi64(15ll << 32 | 14);
  return _mm512_maskz_permutexvar_epi32(0xffff, places, x);
}
#elif defined(__AVX2__) && defined(__FMA__)
using Bits = __m256i;

template <int places>
Bits words_moved_up(Bits x) {
  const Bits below = _mm256_permute2x128_si256(x, x, 0x08);  // the lower half, moved to the upper one
  if constexpr (places == 4)
    return below;
  else
    return _mm256_alignr_epi8(x, below, 16 - 4 * places);  // in each half by itself
}
template <int words>
Bits last_words(Bits x) {
  const Bits places = words == 1 ? _mm256_set1_epi32(7) : _mm256_set1_epi64x(7ll << 32 | 6);
  return _mm256_permutevar8x32_epi32(x, places);
}
#else
using Bits = __m128i;

template <int places>
Bits words_moved_up(Bits x) {
  return _mm_slli_si128(x, 4 * places);
}
template <int words>
Bits last_words(Bits x) {
  return _mm_shuffle_epi32(x, words == 1 ? 0xff : 0xee);
}
#endif

/// Words of 32 bits in a lane. V is Simd of a float, a double or an int32.
template <typename V>
constexpr int words_of_lane = static_cast<int>(sizeof(typename V::Register) / sizeof(std::int32_t) / V::lanes);

/// The lanes of a register so many places further up, with zeros below.
template <typename V, int places>
typename V::Register moved_up(typename V::Register x) {
  return reinterpret_cast<typename V::Register>(words_moved_up<places * words_of_lane<V>>(reinterpret_cast<Bits>(x)));
}

/// The last lane of a register in all lanes.
template <typename V>
typename V::Register last_lane(typename V::Register x) {
  return reinterpret_cast<typename V::Register>(last_words<words_of_lane<V>>(reinterpret_cast<Bits>(x)));
}

}  // namespace
