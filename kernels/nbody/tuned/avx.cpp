// nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
//   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
// Idea: threads, and two registers of points at a time, so that no instruction waits for another.
// Model: an instruction estimates the reciprocal of a root, and a series makes it exact (avx_weights.hpp). The lanes of
//   a register are points that follow one another. Few pairs stay on one thread, since waking others takes longer.
// Memory: some points are first copied, so that all x, all y and all z lie side by side. For these all bodies are read,
//   in order, each number copied to all lanes. They stay in a cache.
// Edges: lanes beyond the last point compute with zeros, and are not written. An empty sum is 0.
#include <cstdint>

#include "avx_points.hpp"

namespace {

/// Pairs up to which a second thread costs more than it saves.
constexpr Size few_to_share = Size(1) << 15;

}  // namespace

template <typename T>
static void nbody(const T* at, const T* position, const T* mass, T* c, std::int64_t m, std::int64_t n) {
  using Some = Points<T, 2>;
#pragma omp parallel for schedule(dynamic) if (m * n > few_to_share)
  for (Size i = 0; i < m; i += Some::count) {
    Some points(at + 3 * i, m - i);
    for (Size j = 0; j < n; ++j) points.attract(position + 3 * j, mass[j]);
    points.put(c + 3 * i, m - i);
  }
}
