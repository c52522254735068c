// Sums in the 16-bit formats, two elements at a time: those that share 32 bits. They are added where they lie. Elements
// that are widened one by one move to other lanes of a register, and back, which costs more than adding them. Each
// source includes this once: under instruments, several namespaces of one program hold that source.

#include "../../formats.hpp"

namespace {

template <typename To, typename From>
To reinterpreted(From from) {
  static_assert(sizeof(To) == sizeof(From), "not the same bits");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

/// The value if the condition holds, else zero. It is a function for the reason that formats.hpp gives.
template <typename Condition, typename Value>
Value zero_unless(Condition condition, Value x) {
  return condition ? x : Value{};
}

/// The types of a pair: of one, or in vectors of several.
struct OnePair {
  using Floats = float;
  using Words = std::uint32_t;
  using Integers = std::int32_t;
};

/// How an element in the upper half of 32 bits, whatever is in the lower half, becomes a float, and how a sum becomes the
/// upper half.
///
/// NaN stays NaN: CPUs make NaN of a NaN that they add, or one of their own. Its first digit is set, so that it does not
/// become infinity. The digits that are dropped are zero, so nothing is carried that would change it.
template <typename T, typename Types>
struct UpperHalf;

template <typename Types>
struct UpperHalf<BFloat16, Types> {
  using Floats = typename Types::Floats;
  using Words = typename Types::Words;

  static Floats widened(Words x) { return reinterpreted<Floats>(x & 0xffff0000u); }

  static Words narrowed(Floats sum) {
    const Words bits = reinterpreted<Words>(sum);
    return bits + 0x7fffu + (bits >> 16 & 1u);
  }
};

/// A float of 2^-112 times the value has the same bits, 13 places further up: its exponent counts from -127, and not
/// from -15. So numbers are added without multiplying them first. Subnormal ones are subnormal floats, whose sums are
/// exact.
template <typename Types>
struct UpperHalf<Float16, Types> {
  using Floats = typename Types::Floats;
  using Words = typename Types::Words;
  using Integers = typename Types::Integers;  // many CPUs compare only numbers with a sign

  /// Infinity and NaN have the largest exponent in both formats.
  static Floats widened(Words x) {
    const Integers bits = reinterpreted<Integers>(x) >> 3 & static_cast<std::int32_t>(0x8fffe000u);
    return reinterpreted<Floats>(bits | zero_unless((bits & 0x0f800000) == 0x0f800000, Integers{} + 0x7f800000));
  }

  /// Shifted by three places, the digits and the lower part of the exponent are where they belong. Finite sums are less
  /// than 2^17, so they are positive then. Those that are rounded to 2^16 or more become infinity. Infinity and NaN are
  /// negative, and stay as they are.
  static Words narrowed(Floats sum) {
    const Words bits = reinterpreted<Words>(sum), rounded = bits + 0xfffu + (bits >> 13 & 1u), shifted = rounded << 3;
    const Words magnitude = reinterpreted<Words>(lesser(reinterpreted<Integers>(shifted), Integers{} + 0x7c000000));
    return (magnitude & 0x7fffffffu) | (rounded & 0x80000000u);
  }
};

/// The sums of pairs of T.
template <typename T, typename Types = OnePair>
struct Pairs {
  using Words = typename Types::Words;
  using Half = UpperHalf<T, Types>;

  static Words add(Words x, Words y) {
    const Words low = Half::narrowed(Half::widened(x << 16) + Half::widened(y << 16));
    const Words high = Half::narrowed(Half::widened(x) + Half::widened(y));
    return low >> 16 | (high & 0xffff0000u);
  }
};

}  // namespace
