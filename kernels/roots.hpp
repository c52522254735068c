// Square roots, for kernels in C++. Those of the standard library belong to the whole program where they are not inlined.
// Everything is in an unnamed namespace, for the reason that simd.hpp gives.
#pragma once

namespace {

inline float root(float x) { return __builtin_sqrtf(x); }
inline double root(double x) { return __builtin_sqrt(x); }

}  // namespace
