// histogram for one thread, in cpp, openmp and avx: the bins of a block of elements, and the tables that count them.
#pragma once

#include <cstring>

#include "../../counting.hpp"
#include "../../formats.hpp"

namespace {

constexpr Size bins = 256, block = 512;

/// Four tables, for elements by turns. So an update seldom waits for the one before, even where all are of one bin. Each
/// has a place more, for what is counted nowhere: to leave that out would take a jump, which the CPU foresees badly.
class Tables {
 public:
  /// Counts elements, by the places of their bins.
  void count(const std::int32_t* place, Size n) {
    Size i = 0;
    for (; i + tables <= n; i += tables) {
      std::uint64_t first, second;  // a load of two places takes as long as one of a single place
      std::memcpy(&first, place + i, sizeof first);
      std::memcpy(&second, place + i + 2, sizeof second);
      ++of_[0][first & 0xffffffff];
      ++of_[1][first >> 32];
      ++of_[2][second & 0xffffffff];
      ++of_[3][second >> 32];
    }
    for (; i < n; ++i) ++of_[0][place[i]];
  }

  void add_to(std::int32_t* c) const {
    for (Size k = 0; k < bins; ++k) c[k] += of_[0][k] + of_[1][k] + of_[2][k] + of_[3][k];
  }

 private:
  static constexpr Size tables = 4;
  std::int32_t of_[tables][bins + 1] = {};
};

/// The places of n elements. `simd` tells the compiler that it may find several at once.
template <typename T>
void find_places(const T* a, std::int32_t* place, Size n) {
#pragma omp simd
  for (Size i = 0; i < n; ++i) {
    if constexpr (sizeof(T) == 1) {
      place[i] = a[i] + 128;
    } else {
      const Sum<T> at = bins * widen(a[i]);
      // Both comparisons are made, so that there is no jump. Neither is true of NaN.
      place[i] = static_cast<std::int32_t>(int(at >= 0) & int(at < bins) ? at : Sum<T>(bins));
    }
  }
}

/// Adds the counts of n elements to c.
template <typename T>
void count(const T* a, std::int32_t* c, Size n) {
  Tables tables;
  std::int32_t place[block];
  for (Size i = 0; i < n; i += block) {
    const Size here = least(block, n - i);
    find_places(a + i, place, here);
    tables.count(place, here);
  }
  tables.add_to(c);
}

}  // namespace
