// A register of elements, and how two of them are added: as they are, as floats, or in pairs.
#pragma once

#include <type_traits>

#include "../../counting.hpp"
#include "../../simd.hpp"
#include "pairs.hpp"

namespace {

/// Instructions that convert float16 cost less than adding it in pairs.
#if defined(__F16C__)
template <typename T>
constexpr bool in_pairs = std::is_same<T, BFloat16>::value;
#else
template <typename T>
constexpr bool in_pairs = sizeof(T) == 2;
#endif

/// A register of elements, and how two of them are added.
template <typename T, bool pairs = in_pairs<T>>
struct Adder : Simd<T> {
  using V = Simd<T>;
  static auto add(const T* a, const T* b) { return V::add(V::load(a), V::load(b)); }
};

/// The types of the pairs in a register.
struct RegisterOfPairs {
  using Floats = Simd<float>::Register;
  using Words = Simd<BFloat16>::Words;
  using Integers = Simd<Float16>::Integers;
};

template <typename T>
struct Adder<T, true> {
  using V = Simd<float>;
  using Register = V::Register;
  using Words = RegisterOfPairs::Words;
  static constexpr Size lanes = 2 * V::lanes;
  static Words load(const T* from) { return reinterpreted<Words>(V::load(reinterpret_cast<const float*>(from))); }
  static Register add(const T* a, const T* b) {
    const Words sums = Pairs<T, RegisterOfPairs>::add(load(a), load(b));
    return reinterpret_cast<Register>(sums);
  }
  static void store(T* to, Register sums) { V::store(reinterpret_cast<float*>(to), sums); }
  static void stream(T* to, Register sums) { V::stream(reinterpret_cast<float*>(to), sums); }
};

}  // namespace
