// Counting in parts, for kernels in C++ on any device. Everything is in an unnamed namespace, for the reason that simd.hpp
// gives.
#pragma once

#include <cstdint>

namespace {

using Size = std::int64_t;

inline Size least(Size x, Size y) { return x < y ? x : y; }
/// How many parts of that size cover the whole.
inline Size parts(Size whole, Size part) { return (whole + part - 1) / part; }

}  // namespace
