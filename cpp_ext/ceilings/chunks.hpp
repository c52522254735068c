// What the ceilings of memory share: each thread goes over one chunk of the vectors, as often as asked for.
//
// The repetitions lie within the parallel region, so that starting and joining threads is paid once. Adding or copying
// vectors that fit a cache would take less time than that.
#pragma once

#include <cstdint>

#include "../../kernels/simd.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace {

/// Elements of a cache line. If a vector begins with a line, no two threads write to the same one.
template <typename T>
constexpr std::int64_t line = 64 / sizeof(T);

/// Registers that a loop handles in an iteration: so many that additions in the first-level cache wait for nothing.
constexpr std::int64_t unrolled = 4;

/// After this the compiler knows nothing of what is in memory. It must read, add and write anew.
inline void forget_memory() { asm volatile("" ::: "memory"); }

template <typename T, bool streamed>
void put(T* to, typename Simd<T>::Register x) {
  if constexpr (streamed) {
    Simd<T>::stream(to, x);
  } else {
    Simd<T>::store(to, x);
  }
}

/// What is written to an element, or to a register's worth of them: sums of two vectors.
template <typename T>
struct Sums {
  const T *a, *b;
  T element(std::int64_t i) const { return a[i] + b[i]; }
  typename Simd<T>::Register vector(std::int64_t i) const {
    return Simd<T>::add(Simd<T>::load(a + i), Simd<T>::load(b + i));
  }
};

/// The elements of one vector.
template <typename T>
struct Copies {
  const T* a;
  T element(std::int64_t i) const { return a[i]; }
  typename Simd<T>::Register vector(std::int64_t i) const { return Simd<T>::load(a + i); }
};

/// Writes the elements from `begin` to before `end`.
template <typename T, bool streamed, typename Source>
void write_chunk(Source source, T* c, std::int64_t begin, std::int64_t end) {
  using V = Simd<T>;
  std::int64_t i = begin;
  if (streamed) {
    for (; i < end && reinterpret_cast<std::uintptr_t>(c + i) % (V::lanes * sizeof(T)) != 0; ++i)
      c[i] = source.element(i);
  }
  for (; i + unrolled * V::lanes <= end; i += unrolled * V::lanes) {
#pragma GCC unroll 4
    for (std::int64_t at = i; at < i + unrolled * V::lanes; at += V::lanes) put<T, streamed>(c + at, source.vector(at));
  }
  for (; i + V::lanes <= end; i += V::lanes) put<T, streamed>(c + i, source.vector(i));
  for (; i < end; ++i) c[i] = source.element(i);
}

/// Every thread calls `work` with its number, and with its own elements, from `begin` to before `end`.
template <typename T, typename Work>
void in_chunks(std::int64_t n, Work work) {
#pragma omp parallel
  {
#if defined(_OPENMP)
    const std::int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
#else
    const std::int64_t threads = 1, thread = 0;
#endif
    const std::int64_t lines = (n + line<T> - 1) / line<T>;
    const std::int64_t begin = lines * thread / threads * line<T>, end = lines * (thread + 1) / threads * line<T>;
    work(thread, begin, end < n ? end : n);
  }
}

template <typename T, bool streamed, typename Source>
void write_in_chunks(Source source, T* c, std::int64_t n, std::int64_t repetitions) {
  in_chunks<T>(n, [=](std::int64_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t repetition = 0; repetition < repetitions; ++repetition) {
      write_chunk<T, streamed>(source, c, begin, end);
      forget_memory();
    }
    if (streamed) _mm_sfence();  // other threads see streamed stores only after this
  });
}

}  // namespace
