// How a thread computes: a kernel's threads do as IEEE 754 has it, whatever mode they are found in.
//
// Libraries built with -ffast-math take subnormal numbers for zero in the thread that loads them. Threads that it starts
// later do so too, and those that it started before do not: one array would have both.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace {

#if defined(__x86_64__)
constexpr std::uint64_t ieee = 0x1F80;  ///< MXCSR: nothing traps, rounding to nearest, subnormal numbers
constexpr std::uint64_t flags = 0x3F;   ///< what has happened
inline std::uint64_t arithmetic() { return _mm_getcsr(); }
inline void set_arithmetic(std::uint64_t mode) { _mm_setcsr(static_cast<unsigned>(mode)); }
#elif defined(__aarch64__)
constexpr std::uint64_t ieee = 0, flags = 0;  // FPCR
inline std::uint64_t arithmetic() {
  std::uint64_t mode;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
inline void set_arithmetic(std::uint64_t mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
constexpr std::uint64_t ieee = 0, flags = 0;  // nothing is known of this processor
inline std::uint64_t arithmetic() { return ieee; }
inline void set_arithmetic(std::uint64_t) {}
#endif

/// While it lives, the calling thread computes as IEEE 754 has it.
class IeeeArithmetic {
 public:
  IeeeArithmetic() : before_(arithmetic()) {
    if (differed()) set_arithmetic(ieee);
  }
  ~IeeeArithmetic() {
    if (differed()) set_arithmetic(before_);
  }
  IeeeArithmetic(const IeeeArithmetic&) = delete;
  IeeeArithmetic& operator=(const IeeeArithmetic&) = delete;

  bool differed() const { return (before_ & ~flags) != ieee; }

 private:
  const std::uint64_t before_;
};

}  // namespace
