// heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
// Idea: as soon as a step has computed three rows, the next step computes the middle one, while they are in the cache.
//   So one pass over the memory is enough for eight steps.
// Model: one directive divides the rows of a pass among threads. Around its rows, a thread computes as many more as there
//   are steps to come, and so do its neighbours. At the end of a pass all threads wait for one another.
// Memory: a pass reads one matrix and writes another one. Of each step between, a thread keeps three rows.
// Edges: the first and last row are copied, and so are the ends of every row. Without an interior, there are no steps.
#include <omp.h>

#include <cstdint>

#include "../../workspace.hpp"

constexpr std::int64_t most_steps = 8, kept = 3;

/// Rows from `top` to before `bottom` of one pass.
template <typename T>
static bool compute(const T* u, T* c, std::int64_t m, std::int64_t n, std::int64_t steps, std::int64_t top,
                    std::int64_t bottom) {
  Workspace memory;
  T* const rows = memory.hold<T>(most_steps * kept * n);
  if (rows == nullptr) return false;
  for (std::int64_t first = top - steps + 1; first < bottom + steps - 1; ++first) {
    for (std::int64_t step = 1; step <= steps; ++step) {
      const std::int64_t i = first - step + 1, more = steps - step;
      if (i < 0 || i < top - more || i >= m || i >= bottom + more) continue;
      T* const before = rows + (step - 1) * kept * n;  // rows of the step before; those of the first one are u's
      const T* const row = step == 1 ? u + i * n : before + i % kept * n;
      T* const after = step == steps ? c + i * n : before + (kept + i % kept) * n;
      const bool stays = i == 0 || i == m - 1;
      const T* const up = step == 1 || stays ? row - !stays * n : before + (i - 1) % kept * n;
      const T* const down = step == 1 || stays ? row + !stays * n : before + (i + 1) % kept * n;
      after[0] = row[0];
      for (std::int64_t j = 1; j < n - 1; ++j) {
        after[j] = stays ? row[j] : row[j] / 2 + (up[j] + down[j] + row[j - 1] + row[j + 1]) / 8;
      }
      after[n - 1] = row[n - 1];
    }
  }
  return true;
}

template <typename T>
static bool heat(const T* u, T* c, std::int64_t m, std::int64_t n, std::int64_t steps) {
  if (m < 3 || n < 3) steps = 0;
  const std::int64_t threads = omp_get_max_threads(), passes = (steps + most_steps - 1) / most_steps;
  Workspace memory;
  T* const other = memory.hold<T>(passes > 1 ? m * n : 1);
  bool enough_memory = other != nullptr;
  for (std::int64_t at = 0; steps == 0 && at < m * n; ++at) c[at] = u[at];
  for (std::int64_t pass = 0; pass < passes && enough_memory && m * n > 0; ++pass) {
    const std::int64_t of_pass = steps * (pass + 1) / passes - steps * pass / passes;
    T* const after = (passes - pass) % 2 == 0 ? other : c;
#pragma omp parallel for reduction(&& : enough_memory)
    for (std::int64_t thread = 0; thread < threads; ++thread) {
      const std::int64_t top = m * thread / threads, bottom = m * (thread + 1) / threads;
      enough_memory = compute(u, after, m, n, of_pass, top, bottom) && enough_memory;
    }
    u = after;
  }
  return enough_memory;
}
