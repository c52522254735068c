// nbody: c[i] = the sum over j of mass[j] d / (d.d + e)^(3/2), with d = position[j] - at[i] and e = 2^-10.
//   m points and n bodies: at and c are m x 3, position is n x 3, all stored by rows.
// Idea: the loop over some points is the inner one, so that the compiler fills vector registers with them (points.hpp).
// Model: C++ in one thread. The directive `simd` asks for vector instructions, and needs no OpenMP library.
// Memory: some points are first copied, so that all x, all y and all z lie side by side, and so do their sums. These
//   stay in the first-level cache, while all bodies are read once, in order.
// Edges: the last points are fewer. An empty sum is 0.
#include <cstdint>

#include "points.hpp"

template <typename T>
static void nbody(const T* at, const T* position, const T* mass, T* c, std::int64_t m, std::int64_t n) {
  for (Size i = 0; i < m; i += most_points)
    accelerate(at + 3 * i, position, mass, c + 3 * i, least(most_points, m - i), n);
}
