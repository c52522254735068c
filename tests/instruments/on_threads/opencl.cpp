// What texts in OpenCL C call, under the names that its compiler gives: those of C++ functions of the same parameters.
#include "work_items.hpp"

using on_threads::place;

std::size_t get_local_id(unsigned at) { return place.local[at]; }
std::size_t get_group_id(unsigned at) { return place.group[at]; }
std::size_t get_global_id(unsigned at) { return place.group[at] * place.group_size[at] + place.local[at]; }
std::size_t get_global_size(unsigned at) { return place.groups[at] * place.group_size[at]; }
void barrier(unsigned) { on_threads::barrier(); }
void mem_fence(unsigned) {}
long min(long x, long y) { return y < x ? y : x; }
long max(long x, long y) { return x < y ? y : x; }
float sqrt(float x) { return __builtin_sqrtf(x); }
double sqrt(double x) { return __builtin_sqrt(x); }
float exp(float x) { return __builtin_expf(x); }
double exp(double x) { return __builtin_exp(x); }
float exp2(float x) { return __builtin_exp2f(x); }
double exp2(double x) { return __builtin_exp2(x); }
float fmax(float x, float y) { return __builtin_fmaxf(x, y); }
double fmax(double x, double y) { return __builtin_fmax(x, y); }
float rsqrt(float x) { return 1 / __builtin_sqrtf(x); }
double rsqrt(double x) { return 1 / __builtin_sqrt(x); }

template <typename T>
using Four = T __attribute__((ext_vector_type(4)));

Four<float> exp2(Four<float> x) { return {exp2(x[0]), exp2(x[1]), exp2(x[2]), exp2(x[3])}; }
Four<double> exp2(Four<double> x) { return {exp2(x[0]), exp2(x[1]), exp2(x[2]), exp2(x[3])}; }
Four<float> fmax(Four<float> x, Four<float> y) {
  return {fmax(x[0], y[0]), fmax(x[1], y[1]), fmax(x[2], y[2]), fmax(x[3], y[3])};
}
Four<double> fmax(Four<double> x, Four<double> y) {
  return {fmax(x[0], y[0]), fmax(x[1], y[1]), fmax(x[2], y[2]), fmax(x[3], y[3])};
}
Four<float> convert_float4(Four<float> x) { return x; }
Four<double> convert_double4(Four<double> x) { return x; }
Four<float> rsqrt(Four<float> x) { return {rsqrt(x[0]), rsqrt(x[1]), rsqrt(x[2]), rsqrt(x[3])}; }
Four<double> rsqrt(Four<double> x) { return {rsqrt(x[0]), rsqrt(x[1]), rsqrt(x[2]), rsqrt(x[3])}; }

// The name of a function holds the address space of its pointers as well, which C++ cannot say. An update puts nothing
// else in an order (OpenCL C 1.2, section 6.12.11).
namespace {
int add(volatile int* counter, int value) { return __atomic_fetch_add(counter, value, __ATOMIC_RELAXED); }
}  // namespace

int add_global(volatile int*, int) __asm__("_Z10atomic_addPU8CLglobalVii");
int add_local(volatile int*, int) __asm__("_Z10atomic_addPU7CLlocalVii");
int increment_global(volatile int*) __asm__("_Z10atomic_incPU8CLglobalVi");
int increment_local(volatile int*) __asm__("_Z10atomic_incPU7CLlocalVi");

int add_global(volatile int* counter, int value) { return add(counter, value); }
int add_local(volatile int* counter, int value) { return add(counter, value); }
int increment_global(volatile int* counter) { return add(counter, 1); }
int increment_local(volatile int* counter) { return add(counter, 1); }
