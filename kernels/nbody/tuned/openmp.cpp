// nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
//   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
// Idea: the loop over some points is the inner one, so that the compiler fills vector registers with them (points.hpp).
// Model: one directive divides the points among threads, and another one some of them among the lanes of registers. Few
//   pairs stay on one thread, since waking others takes longer.
// Memory: some points are first copied, so that all x, all y and all z lie side by side, and so do their sums. These
//   stay in the first-level cache, while all bodies are read once, in order.
// Edges: the last points are fewer. An empty sum is 0. Of no points, a step would be 0, and a compiler may divide by it.
#include <omp.h>

#include <cstdint>

#include "points.hpp"

namespace {

/// Pairs up to which a second thread costs more than it saves.
constexpr Size few_to_share = Size(1) << 14;

}  // namespace

template <typename T>
static void nbody(const T* at, const T* position, const T* mass, T* c, std::int64_t m, std::int64_t n) {
  if (m == 0) return;
  const Size points = least(most_points, parts(m, omp_get_max_threads()));
#pragma omp parallel for schedule(dynamic) if (m * n > few_to_share)
  for (Size i = 0; i < m; i += points) accelerate(at + 3 * i, position, mass, c + 3 * i, least(points, m - i), n);
}
