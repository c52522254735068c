// What the two memory ceilings share: c = a + b in one stretch a thread.
#pragma once

#include <cstdint>

#include "../../kernels/simd.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace {

/// The elements from `begin` to before `end`.
template <typename T, bool streamed>
void add_stretch(const T* a, const T* b, T* c, std::int64_t begin, std::int64_t end) {
  using V = Simd<T>;
  std::int64_t i = begin;
  if (streamed) {
    for (; i < end && reinterpret_cast<std::uintptr_t>(c + i) % (V::lanes * sizeof(T)) != 0; ++i) c[i] = a[i] + b[i];
  }
  for (; i + V::lanes <= end; i += V::lanes) {
    const auto sum = V::add(V::load(a + i), V::load(b + i));
    if (streamed) {
      V::stream(c + i, sum);
    } else {
      V::store(c + i, sum);
    }
  }
  for (; i < end; ++i) c[i] = a[i] + b[i];
  if (streamed) _mm_sfence();  // streamed stores are seen by others only after this
}

template <typename T, bool streamed>
void add_in_stretches(const T* a, const T* b, T* c, std::int64_t n) {
#pragma omp parallel
  {
#if defined(_OPENMP)
    const std::int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
#else
    const std::int64_t threads = 1, thread = 0;
#endif
    add_stretch<T, streamed>(a, b, c, n / threads * thread, thread == threads - 1 ? n : n / threads * (thread + 1));
  }
}

}  // namespace
