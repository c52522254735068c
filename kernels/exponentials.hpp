// Exponentials, for kernels in C++. Those of the standard library belong to the whole program where they are not inlined.
// Everything is in an unnamed namespace, for the reason that simd.hpp gives.
#pragma once

namespace {

constexpr float infinity = __builtin_huge_valf();

inline float exponential(float x) { return __builtin_expf(x); }
inline double exponential(double x) { return __builtin_exp(x); }

}  // namespace
