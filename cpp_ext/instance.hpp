// One kernel text, compiled for one instruction set: what the generated instance files hand to a module.
//
// The instance files are the only ones compiled with -mavx2 and the like, so nothing in them may end up in
// the rest of the program: everything has internal linkage (static or an unnamed namespace), but for one
// constant. In particular they use no pybind11 and no function of the standard library that is defined in a
// header: the linker keeps one copy of such a function for everyone, and it could be the AVX-512 one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

constexpr int most_arguments = 8;  ///< arrays, and sizes, that a kernel may take

/// A kernel behind one signature: its arrays (inputs, then output) and its sizes, in order. False where it found no
/// memory for its own use: then the output is undefined, and Python raises MemoryError.
using UniformKernel = bool (*)(void* const* arrays, const std::int64_t* sizes);

/// One kernel text for one instruction set, with an entry for each dtype.
struct Instance {
  const char* kernel;
  const char* variant;
  const char* instruction_set;
  const char* sha256;  ///< of the text, in hexadecimal
  UniformKernel float32;
  UniformKernel float64;
  int arrays;  ///< how many the kernel takes, the output last
  int sizes;   ///< how many the kernel takes
};

namespace {

/// Argument number `at` of a kernel: a pointer from `arrays`, or, after all of those, one of `sizes`.
template <typename Parameter, int count_of_arrays>
inline Parameter argument(void* const* arrays, const std::int64_t* sizes, int at) {
  if constexpr (std::is_pointer_v<Parameter>) {
    return static_cast<Parameter>(arrays[at]);
  } else {
    static_assert(std::is_same_v<Parameter, std::int64_t>, "a kernel takes pointers, then sizes in std::int64_t");
    return sizes[at - count_of_arrays];
  }
}

/// Derives a kernel's numbers of arguments, and its uniform entry, from its signature. A kernel that needs memory of
/// its own returns whether there was enough; any other returns nothing.
template <auto kernel>
struct Entry;

template <typename Result, typename... Parameters, Result (*kernel)(Parameters...)>
struct Entry<kernel> {
  static_assert(std::is_void_v<Result> || std::is_same_v<Result, bool>,
                "a kernel returns nothing, or bool: whether there was memory enough");
  static constexpr int arrays = (0 + ... + static_cast<int>(std::is_pointer_v<Parameters>));
  static constexpr int sizes = static_cast<int>(sizeof...(Parameters)) - arrays;
  static_assert(0 < arrays && arrays <= most_arguments && sizes <= most_arguments, "raise most_arguments");

  static bool run(void* const* given_arrays, const std::int64_t* given_sizes) {
    return run(given_arrays, given_sizes, std::index_sequence_for<Parameters...>());
  }

 private:
  template <std::size_t... at>
  static bool run(void* const* given_arrays, const std::int64_t* given_sizes, std::index_sequence<at...>) {
    if constexpr (std::is_void_v<Result>) {
      kernel(argument<Parameters, arrays>(given_arrays, given_sizes, static_cast<int>(at))...);
      return true;
    } else {
      return kernel(argument<Parameters, arrays>(given_arrays, given_sizes, static_cast<int>(at))...);
    }
  }
};

}  // namespace
