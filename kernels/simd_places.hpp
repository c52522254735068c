// The lanes of a vector register by their places: moved up some places, for prefix sums. Everything is in an unnamed
// namespace, for the reason that simd.hpp gives.
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
#else
using Bits = __m128i;

template <int places>
Bits words_moved_up(Bits x) {
  return _mm_slli_si128(x, 4 * places);
}
#endif

/// The lanes of a register so many places further up, with zeros below. V is Simd of a float, a double or an int32.
template <typename V, int places>
typename V::Register moved_up(typename V::Register x) {
  constexpr int words = static_cast<int>(sizeof(x) / sizeof(std::int32_t) / V::lanes);
  return reinterpret_cast<typename V::Register>(words_moved_up<places * words>(reinterpret_cast<Bits>(x)));
}

}  // namespace
