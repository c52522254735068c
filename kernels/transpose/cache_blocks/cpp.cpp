// transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
// Idea: finish one block after another. Then the cache lines of a that a column touches are still in the first-level
//   cache when the next column needs their other elements.
// Model: C++ in one thread: two loops over blocks, and two within a block.
// Memory: reads and writes the lines of a block once from further away, unless rows take each other's places.
// Edges: the last blocks end where the matrix does.
// ---
// Formats: float32, float64
#include <cstdint>

constexpr std::int64_t side = 16;  // a line of floats

static std::int64_t least(std::int64_t x, std::int64_t y) { return x < y ? x : y; }

template <typename T>
static void transpose(const T* a, T* c, std::int64_t m, std::int64_t n) {
  for (std::int64_t i0 = 0; i0 < m; i0 += side) {
    for (std::int64_t j0 = 0; j0 < n; j0 += side) {
      for (std::int64_t i = i0; i < least(i0 + side, m); ++i) {
        for (std::int64_t j = j0; j < least(j0 + side, n); ++j) c[i * n + j] = a[j * m + i];
      }
    }
  }
}
