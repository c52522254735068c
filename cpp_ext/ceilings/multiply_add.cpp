// multiply_add: `count` multiply-adds of single elements in each thread, in registers alone.
// Model: chains of fused multiply-adds that do not wait for one another. With a latency of 4 cycles and two units, 8
//   chains keep the units busy; some more hide the loop. SSE multiplies and adds in two instructions. Each format has
//   the fastest instruction that this CPU has for it.
// Memory: a holds the factor and the addend. c has one element a thread, so that the compiler cannot leave out the
//   work.
// Edges: only whole steps of all chains are done, and the rest of `count` is not. So make it a multiple of 98,304.
// ---
// Formats: float32, float64, float16, bfloat16, int8
// Formats on amx: float16, bfloat16, int8
#include <cstdint>

#if defined(__AMX_TILE__)
#include "tiles.hpp"
#else
#include "units.hpp"
#endif

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace {

int this_thread() {
#if defined(_OPENMP)
  return omp_get_thread_num();
#else
  return 0;
#endif
}

#if defined(__AMX_TILE__)
template <typename T>
void multiply_add_chains(const T*, Sum<T>* c, std::int64_t count) {
  multiply_add_tiles<T>(c, count);
}
#else
constexpr int chains = 12;  // with the factor and the addend, 14 of x86-64's 16 registers

template <typename Unit, typename T>
inline __attribute__((always_inline)) void run_chains(const T* a, Sum<T>* c, std::int64_t count) {
  const auto factor = Unit::broadcast(widen(a[0])), addend = Unit::broadcast(widen(a[1]));
  typename Unit::Register sum[chains];
#pragma GCC unroll 16
  for (int chain = 0; chain < chains; ++chain) sum[chain] = Unit::broadcast(Sum<T>(chain));
  for (std::int64_t step = count / (chains * Unit::products); step > 0; --step) {
#pragma GCC unroll 16
    for (int chain = 0; chain < chains; ++chain) sum[chain] = Unit::step(sum[chain], factor, addend);
  }
  for (int chain = 1; chain < chains; ++chain) sum[0] = Unit::add(sum[0], sum[chain]);
  __builtin_memcpy(c, &sum[0], sizeof *c);
}

template <typename T>
DOTS void run_dots(const T* a, Sum<T>* c, std::int64_t count) {
  run_chains<Dots<T>>(a, c, count);
}

template <typename T>
void multiply_add_chains(const T* a, Sum<T>* c, std::int64_t count) {
  if (Dots<T>::there())
    run_dots(a, c, count);
  else
    run_chains<Unit<T>>(a, c, count);
}
#endif

}  // namespace

template <typename T>
static void multiply_add(const T* a, Sum<T>* c, std::int64_t count) {
#pragma omp parallel
  multiply_add_chains(a, c + this_thread(), count);
}
