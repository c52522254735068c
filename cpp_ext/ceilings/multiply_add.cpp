// multiply_add: `count` multiply-adds of single elements in each thread, in registers alone.
// Model: chains of fused multiply-adds that do not wait for one another: with a latency of 4 cycles and two units,
//   8 chains keep the units busy; some more hide the loop. SSE multiplies and adds in two instructions.
// Memory: a holds the factor and the addend, c one element a thread, which keeps the compiler from leaving out the work.
// Edges: what is left of `count` after whole steps of all chains is not done: give a multiple of 192.
#include <cstdint>

#include "../../kernels/simd.hpp"

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

}  // namespace

template <typename T>
static void multiply_add(const T* a, T* c, std::int64_t count) {
  using V = Simd<T>;
  constexpr int chains = 12;  // with the factor and the addend 14 of the 16 registers that every x86-64 has
#pragma omp parallel
  {
    const auto factor = V::broadcast(a[0]), addend = V::broadcast(a[1]);
    typename V::Register sum[chains];
#pragma GCC unroll 16
    for (int chain = 0; chain < chains; ++chain) sum[chain] = V::broadcast(T(chain));
    for (std::int64_t step = count / (chains * V::lanes); step > 0; --step) {
#pragma GCC unroll 16
      for (int chain = 0; chain < chains; ++chain) sum[chain] = V::multiply_add(sum[chain], factor, addend);
    }
    for (int chain = 1; chain < chains; ++chain) sum[0] = V::add(sum[0], sum[chain]);
    T lanes[V::lanes];
    V::store(lanes, sum[0]);
    c[this_thread()] = lanes[0];
  }
}
