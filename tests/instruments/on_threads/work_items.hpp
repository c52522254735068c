// Work items that are threads of the host: what a text of a device asks of its place, and the barrier of its group.
//
// A text is compiled twice into one program, in two namespaces, so that its local memory is there twice: two teams of
// threads then run groups at the same time, and nothing but the text itself orders what they do. Within a team a group
// begins when the one before has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace on_threads {

/// Where a work item is. Dimension 0 is the fastest, as in OpenCL and CUDA.
struct Place {
  std::size_t local[3], group[3], group_size[3], groups[3];
  int dimensions;
};

/// Of the calling thread.
extern __thread Place place;

/// Returns when all work items of the group have come here. Ends the program where some have gone elsewhere.
void barrier();

/// Of the calling thread in its group, and in its warp, which is 32 work items that follow each other.
inline std::size_t place_in_group() {
  return (place.local[2] * place.group_size[1] + place.local[1]) * place.group_size[0] + place.local[0];
}
inline std::size_t place_in_warp() { return place_in_group() % 32; }
inline std::size_t items_of_group() { return place.group_size[0] * place.group_size[1] * place.group_size[2]; }

/// Where the work items of a group lay what they bring, a place for each.
std::uint64_t* of_group();

/// What the work item of that place in the calling thread's warp brings. All of a warp come here; other warps go on.
std::uint64_t exchanged(std::uint64_t mine, std::size_t from);

/// A kernel behind one signature: its arrays and scratch memory, and its sizes.
using Kernel = void (*)(void* const* arrays, const std::int64_t* sizes);

/// One kernel of those that a text launches one after the other, once for each team.
struct Stage {
  Kernel of_team[2];
  std::size_t group_size[3];
  int dimensions;
};

/// A text in one dtype: what it launches, and how its arguments are counted.
struct Text {
  const char* dtype;
  std::size_t element_bytes;
  std::size_t result_bytes;  ///< of an element of the output
  int arrays;                ///< inputs and output
  bool scratch;
  int sizes;
  int stages;
  const Stage* stage;
};

extern const Text texts[];
extern const int number_of_texts;

template <typename Parameter>
Parameter argument(void* const* arrays, const std::int64_t* sizes, int at, int pointers) {
  if constexpr (std::is_pointer_v<Parameter>) {
    return static_cast<Parameter>(arrays[at]);
  } else {
    return static_cast<Parameter>(sizes[at - pointers]);
  }
}

template <typename... Parameters, std::size_t... at>
void call(void (*kernel)(Parameters...), void* const* arrays, const std::int64_t* sizes, std::index_sequence<at...>) {
  constexpr int pointers = (0 + ... + static_cast<int>(std::is_pointer_v<Parameters>));
  kernel(argument<Parameters>(arrays, sizes, static_cast<int>(at), pointers)...);
}

/// Derives the uniform signature from the kernel's own: pointers, then sizes.
template <auto kernel>
struct Entry;
template <typename... Parameters, void (*kernel)(Parameters...)>
struct Entry<kernel> {
  static void run(void* const* arrays, const std::int64_t* sizes) {
    call(kernel, arrays, sizes, std::index_sequence_for<Parameters...>());
  }
};

}  // namespace on_threads
