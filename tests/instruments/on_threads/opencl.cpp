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
float rsqrt(float x) { return 1 / __builtin_sqrtf(x); }
double rsqrt(double x) { return 1 / __builtin_sqrt(x); }

template <typename T>
using Four = T __attribute__((ext_vector_type(4)));

Four<float> rsqrt(Four<float> x) { return {rsqrt(x[0]), rsqrt(x[1]), rsqrt(x[2]), rsqrt(x[3])}; }
Four<double> rsqrt(Four<double> x) { return {rsqrt(x[0]), rsqrt(x[1]), rsqrt(x[2]), rsqrt(x[3])}; }
