// histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
// Idea: instructions find the places of all elements of a register: a product, two comparisons, a conversion. Threads,
//   since one core alone cannot fill the memory's bandwidth.
// Model: AVX has no instruction that counts, since two lanes may have the same bin. So places go to memory, and are
//   counted one by one, in four tables by turns (tables.hpp). Short vectors stay on one thread.
// Memory: reads a once, in order. A thread's tables and places are 6 KiB, and stay in its nearest cache.
// Edges: after its last full register, a thread finds one place at a time. What lies outside of [0, 1), NaN too, has a
//   place that is added to nothing.
#include <cstdint>

#include "../../simd.hpp"
#include "tables.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace {

/// Bytes of a vector up to which a second thread costs more than it saves.
constexpr Size few_to_share = Size(1) << 16;

// The places of products of a register: as whole numbers where they are in [0, 256), else 256.
#if defined(__AVX512F__)

inline void store_places(std::int32_t* to, __m512 at) {
  const __mmask16 inside = _mm512_cmp_ps_mask(at, _mm512_setzero_ps(), _CMP_GE_OQ) &
                           _mm512_cmp_ps_mask(at, _mm512_set1_ps(bins), _CMP_LT_OQ);
  _mm512_storeu_si512(to, _mm512_mask_cvttps_epi32(_mm512_set1_epi32(bins), inside, at));
}
inline void store_places(std::int32_t* to, __m512d at) {
  const __mmask8 inside = _mm512_cmp_pd_mask(at, _mm512_setzero_pd(), _CMP_GE_OQ) &
                          _mm512_cmp_pd_mask(at, _mm512_set1_pd(bins), _CMP_LT_OQ);
  const __m256i places = _mm512_mask_cvttpd_epi32(_mm256_set1_epi32(bins), inside, at);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), places);
}

#elif defined(__AVX2__) && defined(__FMA__)

inline void store_places(std::int32_t* to, __m256 at) {
  const __m256 end = _mm256_set1_ps(bins);
  const __m256 inside =
      _mm256_and_ps(_mm256_cmp_ps(at, _mm256_setzero_ps(), _CMP_GE_OQ), _mm256_cmp_ps(at, end, _CMP_LT_OQ));
  const __m256i places = _mm256_cvttps_epi32(_mm256_blendv_ps(end, at, inside));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), places);
}
inline void store_places(std::int32_t* to, __m256d at) {
  const __m256d end = _mm256_set1_pd(bins);
  const __m256d inside =
      _mm256_and_pd(_mm256_cmp_pd(at, _mm256_setzero_pd(), _CMP_GE_OQ), _mm256_cmp_pd(at, end, _CMP_LT_OQ));
  const __m128i places = _mm256_cvttpd_epi32(_mm256_blendv_pd(end, at, inside));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), places);
}

#else

inline void store_places(std::int32_t* to, __m128 at) {
  const __m128 end = _mm_set1_ps(bins), inside = _mm_and_ps(_mm_cmpge_ps(at, _mm_setzero_ps()), _mm_cmplt_ps(at, end));
  const __m128i places = _mm_cvttps_epi32(_mm_or_ps(_mm_and_ps(inside, at), _mm_andnot_ps(inside, end)));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), places);
}
inline void store_places(std::int32_t* to, __m128d at) {
  const __m128d end = _mm_set1_pd(bins), inside = _mm_and_pd(_mm_cmpge_pd(at, _mm_setzero_pd()), _mm_cmplt_pd(at, end));
  const __m128i places = _mm_cvttpd_epi32(_mm_or_pd(_mm_and_pd(inside, at), _mm_andnot_pd(inside, end)));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), places);
}

#endif

/// Adds the counts of n elements to c.
template <typename T>
void count_registers(const T* a, std::int32_t* c, Size n) {
  using V = Simd<T>;
  Tables tables;
  std::int32_t place[block];
  for (Size begin = 0; begin < n; begin += block) {
    const Size here = least(block, n - begin);
    Size i = 0;
    for (; i + V::lanes <= here; i += V::lanes) {
      if constexpr (sizeof(T) == 1) {
        V::store(place + i, V::add(V::load(a + begin + i), V::broadcast(128)));
      } else {
        store_places(place + i, V::multiply(V::load(a + begin + i), V::broadcast(bins)));
      }
    }
    find_places(a + begin + i, place + i, here - i);
    tables.count(place, here);
  }
  tables.add_to(c);
}

}  // namespace

template <typename T>
static void histogram(const T* a, std::int32_t* c, std::int64_t n) {
  for (Size k = 0; k < bins; ++k) c[k] = 0;
#if defined(_OPENMP)
  const Size threads = n * Size(sizeof(T)) > few_to_share ? omp_get_max_threads() : 1;
#else
  const Size threads = 1;
#endif
  if (threads == 1) {
    count_registers(a, c, n);
    return;
  }
#pragma omp parallel for reduction(+ : c[ : bins]) schedule(static)
  for (Size thread = 0; thread < threads; ++thread) {
    const Size begin = n * thread / threads;
    count_registers(a + begin, c, n * (thread + 1) / threads - begin);
  }
}
