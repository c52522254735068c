// What kernels in C++ need beside arithmetic: the caches' sizes, and memory of their own.
//
// Everything is in an unnamed namespace. One program holds this header compiled for several instruction sets, and the
// linker must never replace one version by another.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "counting.hpp"

#if defined(PY_BACKENDS_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace {

/// Bytes of a cache of the first core; 0 where there is none, or the system does not tell. Linux lists the caches by
/// level: data, instructions, second level, third level. The C library instead adds up all third-level caches of a
/// processor, of which a core reaches one.
inline Size cache(int number) {
  char path[64];
  snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/size", number);
  long kibibytes = 0;
  if (FILE* const file = fopen(path, "r")) {
    if (fscanf(file, "%ldK", &kibibytes) != 1) kibibytes = 0;
    fclose(file);
  }
  return Size(kibibytes) << 10;
}

/// Bytes of a core's second-level cache, and of its last level. Where the system does not tell, a usual size.
inline Size second_level_cache() {
  static const Size found = cache(2);
  return found > 0 ? found : Size(1) << 20;
}
inline Size last_level_cache() {
  static const Size found = cache(3);
  return found > 0 ? found : least(second_level_cache() * 4, Size(1) << 25);
}

/// Bytes beyond which results go past the caches. A last level of hundreds of MiB is that of a whole processor, of which
/// other cores have the most: where it had 480 MiB, stores past it were faster from 100 MiB on. 96 MiB are the largest
/// that a few cores have to themselves.
inline Size effective_cache() { return least(last_level_cache(), Size(96) << 20); }

/// Memory that a thread keeps for its next call. Allocating it anew would cost more than a small product.
struct Workspace {
  void* memory = nullptr;
  Size bytes = 0;

  /// Memory for so many elements, or null.
  template <typename T>
  T* hold(Size elements) {
    const Size wanted = elements * Size(sizeof(T));
    if (memory == nullptr || wanted > bytes) take(wanted);
    if (memory == nullptr) return nullptr;
#if defined(PY_BACKENDS_ASAN)
    // The memory may be larger than was asked for, but no kernel may touch the rest.
    __asan_unpoison_memory_region(memory, bytes);
    __asan_poison_memory_region(static_cast<char*>(memory) + wanted, bytes - wanted);
#endif
    return static_cast<T*>(memory);
  }

  void take(Size wanted) {
    constexpr Size small_page = Size(1) << 12, large_page = Size(1) << 21;
    const Size page = wanted < large_page ? small_page : large_page;
    free(memory);
    bytes = (parts(wanted, page) + 1) * page;
    memory = aligned_alloc(page, bytes);
    if (memory == nullptr) bytes = 0;
    if (memory != nullptr && page == large_page) madvise(memory, bytes, MADV_HUGEPAGE);  // fewer pages to look up
  }

  ~Workspace() { free(memory); }
};

}  // namespace
