// vecadd: c = a + b for vectors of n elements.
// Idea: `simd` tells the compiler that vectors may be the same, but never shifted: it need not check, and is as quick
//   where c is a or b. Threads take stretches, since one core alone cannot fill the memory's bandwidth.
// Model: one directive shares the loop among threads and registers; short vectors are not worth waking threads for.
// Memory: reads a and b once and writes c once, in order. An ordinary store reads the line that it is about to overwrite,
//   a quarter of all traffic; the clause `nontemporal(c)` would ask for stores past the cache, but g++ 12 ignores it.
// Edges: none; the threads' stretches are of almost equal length, and the compiler adds what fills no register.
#include <cstdint>

template <typename T>
static void vecadd(const T* a, const T* b, T* c, std::int64_t n) {
  constexpr std::int64_t few_to_share = 1 << 16;  // below, waking the threads takes longer than adding
  if (n <= few_to_share) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  } else {
#pragma omp parallel for simd schedule(static)
    for (std::int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  }
}
