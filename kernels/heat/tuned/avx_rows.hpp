// How avx computes some rows: in registers, each of which has neighbours of a row in its lanes.
#pragma once

#include "../../simd.hpp"
#include "sweeps.hpp"

namespace {

/// The elements to the left and to the right of those in a register. In AVX-512 they come from the registers before and
/// behind. A load there would be slower, since it has parts of two cache lines.
template <typename T>
struct Beside : Simd<T> {
  using V = Simd<T>;
  using Register = typename V::Register;
#if defined(__AVX512F__)
  static __m512 left(__m512 before, __m512 x, const float*) {
    return _mm512_castsi512_ps(
        _mm512_maskz_alignr_epi32(0xffff, _mm512_castps_si512(x), _mm512_castps_si512(before), 15));
  }
  static __m512d left(__m512d before, __m512d x, const double*) {
    return _mm512_castsi512_pd(_mm512_maskz_alignr_epi64(0xff, _mm512_castpd_si512(x), _mm512_castpd_si512(before), 7));
  }
  static __m512 right(__m512 x, __m512 behind, const float*) {
    return _mm512_castsi512_ps(
        _mm512_maskz_alignr_epi32(0xffff, _mm512_castps_si512(behind), _mm512_castps_si512(x), 1));
  }
  static __m512d right(__m512d x, __m512d behind, const double*) {
    return _mm512_castsi512_pd(_mm512_maskz_alignr_epi64(0xff, _mm512_castpd_si512(behind), _mm512_castpd_si512(x), 1));
  }
#else
  static Register left(Register, Register, const T* at) { return V::load(at - 1); }
  static Register right(Register, Register, const T* at) { return V::load(at + 1); }
#endif
};

struct Registers {
  /// Elements of some rows, from one column to before another one. Those that are read begin with the row above.
  template <typename T, Size rows>
  static void compute(const T* const (&before)[rows + 2], T* const (&after)[rows], Size begin, Size end) {
    using V = Beside<T>;
    // Up to where a cache line begins, so that only few loads and stores have parts of two.
    const Size to_line = -Size(reinterpret_cast<std::uintptr_t>(after[0] + begin) / sizeof(T)) & (V::lanes - 1);
    Size j = begin + least(to_line, greatest(0, end - begin));
    if (j > begin) compute_part(before, after, begin, j - begin);
    if (j + 2 * V::lanes <= end) {
      typename V::Register left[rows], x[rows];
      for (Size r = 0; r < rows; ++r) {
        left[r] = V::broadcast(before[r + 1][j - 1]);
        x[r] = V::load(before[r + 1] + j);
      }
      for (; j + 2 * V::lanes <= end; j += V::lanes) {
        typename V::Register behind[rows];
#pragma GCC unroll 4
        for (Size r = 0; r < rows; ++r) behind[r] = V::load(before[r + 1] + j + V::lanes);
#pragma GCC unroll 4
        for (Size r = 0; r < rows; ++r) {
          const T* const at = before[r + 1] + j;
          const auto up = r == 0 ? V::load(before[0] + j) : x[r - 1];
          const auto down = r == rows - 1 ? V::load(before[rows + 1] + j) : x[r + 1];
          const auto beside = V::add(V::left(left[r], x[r], at), V::right(x[r], behind[r], at));
          V::store(after[r] + j, stepped<T>(x[r], V::add(V::add(up, down), beside)));
        }
#pragma GCC unroll 4
        for (Size r = 0; r < rows; ++r) {
          left[r] = x[r];
          x[r] = behind[r];
        }
      }
    }
    for (; j < end; j += V::lanes) compute_part(before, after, j, least(V::lanes, end - j));
  }

 private:
  /// So many columns, at most those of a register.
  template <typename T, Size rows>
  static void compute_part(const T* const (&before)[rows + 2], T* const (&after)[rows], Size j, Size columns) {
    using V = Simd<T>;
    const auto load = [columns](const T* from) {
      return columns < V::lanes ? V::load_part(from, columns) : V::load(from);
    };
    for (Size r = 0; r < rows; ++r) {
      const T* const row = before[r + 1] + j;
      const auto sum =
          V::add(V::add(load(before[r] + j), load(before[r + 2] + j)), V::add(load(row - 1), load(row + 1)));
      const auto made = stepped<T>(load(row), sum);
      if (columns < V::lanes) {
        V::store_part(after[r] + j, made, columns);
      } else {
        V::store(after[r] + j, made);
      }
    }
  }

  /// Half of an element and an eighth of the sum of its neighbours.
  template <typename T>
  static typename Simd<T>::Register stepped(typename Simd<T>::Register x, typename Simd<T>::Register sum) {
    using V = Simd<T>;
    return V::multiply_add(x, V::broadcast(T(1) / 2), V::multiply(sum, V::broadcast(T(1) / 8)));
  }
};

}  // namespace
