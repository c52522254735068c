// One kernel source, compiled for one instruction set: what the generated instance files hand to a module.
//
// Only the instance files are compiled with -mavx2 and the like, so nothing in them may end up in the rest of the
// program. Of what they define, cmake/part_instances.cmake makes everything local but one constant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "../kernels/formats.hpp"

constexpr int most_arguments = 16;  ///< arrays, and sizes, that a kernel may take

/// A kernel behind one signature: its arrays (inputs, then outputs) and its sizes, in order, a real number by the bits
/// of a double. It returns false if it found no memory for its own use. Then the outputs are undefined, and Python
/// raises MemoryError.
using UniformKernel = bool (*)(void* const* arrays, const std::int64_t* sizes);

/// A kernel for one number format.
struct Format {
  const char* dtypes[most_arguments];  ///< of its arrays, by NumPy's names
  UniformKernel run;
};

/// One kernel source for one instruction set, in all the formats that it takes.
struct Instance {
  const char* kernel;
  const char* variant;
  const char* instruction_set;
  const char* sha256;  ///< of the source and all that it includes, in hexadecimal
  const Format* formats;
  int count_of_formats;
  int arrays;  ///< how many the kernel takes, inputs and then outputs
  int sizes;   ///< how many the kernel takes
};

/// The number formats by NumPy's names, as `Formats:` in a source's head comment has them.
namespace dtypes {
using float32 = float;
using float64 = double;
using float16 = Float16;
using bfloat16 = BFloat16;
using int8 = std::int8_t;
using int32 = std::int32_t;
using int64 = std::int64_t;
}  // namespace dtypes

namespace {

template <typename T>
constexpr const char* name_of = nullptr;
template <>
constexpr const char* name_of<float> = "float32";
template <>
constexpr const char* name_of<double> = "float64";
template <>
constexpr const char* name_of<Float16> = "float16";
template <>
constexpr const char* name_of<BFloat16> = "bfloat16";
template <>
constexpr const char* name_of<std::int8_t> = "int8";
template <>
constexpr const char* name_of<std::int32_t> = "int32";
template <>
constexpr const char* name_of<std::int64_t> = "int64";

/// What NumPy calls the elements of a parameter; null for a size or a real number.
template <typename Parameter>
constexpr const char* dtype_of =
    std::is_pointer_v<Parameter> ? name_of<std::remove_const_t<std::remove_pointer_t<Parameter>>> : nullptr;

/// Argument number `at` of a kernel: a pointer from `arrays`, or, after all of those, one of `sizes`.
template <typename Parameter, int count_of_arrays>
inline Parameter argument(void* const* arrays, const std::int64_t* sizes, int at) {
  if constexpr (std::is_pointer_v<Parameter>) {
    return static_cast<Parameter>(arrays[at]);
  } else if constexpr (std::is_floating_point_v<Parameter>) {
    double number = 0;
    __builtin_memcpy(&number, &sizes[at - count_of_arrays], sizeof number);
    return static_cast<Parameter>(number);
  } else {
    static_assert(std::is_same_v<Parameter, std::int64_t>,
                  "a kernel takes pointers, then sizes in std::int64_t and real numbers");
    return sizes[at - count_of_arrays];
  }
}

/// Derives a kernel's numbers of arguments, and its uniform entry, from its signature. A kernel that needs memory of
/// its own returns whether there was enough. Any other kernel returns nothing.
template <auto kernel>
struct Entry;

template <typename Result, typename... Parameters, Result (*kernel)(Parameters...)>
struct Entry<kernel> {
  static_assert(std::is_void_v<Result> || std::is_same_v<Result, bool>,
                "a kernel returns nothing, or bool: whether there was enough memory");
  static constexpr int arrays = (0 + ... + static_cast<int>(std::is_pointer_v<Parameters>));
  static constexpr int sizes = static_cast<int>(sizeof...(Parameters)) - arrays;
  static_assert(0 < arrays && sizeof...(Parameters) <= most_arguments, "raise most_arguments");
  static_assert(((!std::is_pointer_v<Parameters> || dtype_of<Parameters> != nullptr) && ...), "not a number format");
  static constexpr Format format() { return {{dtype_of<Parameters>...}, run}; }

 private:
  static bool run(void* const* given_arrays, const std::int64_t* given_sizes) {
    return run(given_arrays, given_sizes, std::index_sequence_for<Parameters...>());
  }

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
