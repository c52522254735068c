// read: the sum of all elements of a, taken `repetitions` times and added up. Memory is read and never written.
// Model: full registers, with so many sums that no addition waits for another. Each thread takes one chunk of a.
// Memory: exactly one vector moves. c has one element a thread, so that the compiler cannot leave out the work.
// Edges: the last elements of a chunk are added one at a time.
#include "chunks.hpp"

template <typename T>
static void read(const T* a, T* c, std::int64_t n, std::int64_t repetitions) {
  using V = Simd<T>;
  constexpr int sums = 8;  // with a latency of 4 cycles and two units
  in_chunks<T>(n, [=](std::int64_t thread, std::int64_t begin, std::int64_t end) {
    T total = 0;
    for (std::int64_t repetition = 0; repetition < repetitions; ++repetition) {
      typename V::Register sum[sums];
#pragma GCC unroll 8
      for (int at = 0; at < sums; ++at) sum[at] = V::broadcast(T(0));
      std::int64_t i = begin;
      for (; i + sums * V::lanes <= end; i += sums * V::lanes) {
#pragma GCC unroll 8
        for (int at = 0; at < sums; ++at) sum[at] = V::add(sum[at], V::load(a + i + at * V::lanes));
      }
      for (; i < end; ++i) total += a[i];
      for (int at = 1; at < sums; ++at) sum[0] = V::add(sum[0], sum[at]);
      T lanes[V::lanes];
      V::store(lanes, sum[0]);
      for (const T lane : lanes) total += lane;
      forget_memory();
    }
    c[thread] = total;
  });
}
