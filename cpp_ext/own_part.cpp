// Compiled once for each module. instances.inc names its kernels. OpenMP is on where the module has it, or oneTBB.
#include "own_part.hpp"

#if defined(_OPENMP)
#include <omp.h>
#include <pthread.h>
#elif defined(PY_BACKENDS_TBB)
#include <tbb/task_arena.h>

#include <map>
#include <new>
#endif

#define INSTANCE(symbol) extern const Instance symbol;
#include "instances.inc"
#undef INSTANCE

const Instance* const instances[] = {
#define INSTANCE(symbol) &symbol,
#include "instances.inc"
#undef INSTANCE
};

const int count_of_instances = sizeof instances / sizeof *instances;

namespace {

#if defined(_OPENMP)
/// While it lives, parallel regions that the calling thread starts have `threads` threads.
class ThreadLimit {
 public:
  explicit ThreadLimit(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  ~ThreadLimit() { omp_set_num_threads(before_); }
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int before_;
};
#elif defined(PY_BACKENDS_TBB)
/// The calling thread and others, `threads` at most. Each thread that calls has arenas of its own: in one that another
/// thread uses, it would wait for it.
tbb::task_arena& arena_of(int threads) {
  static thread_local std::map<int, tbb::task_arena> arenas;
  return arenas.try_emplace(threads, threads).first->second;
}
#endif

}  // namespace

bool run_on_threads(UniformKernel kernel, void* const* arrays, const std::int64_t* sizes,
                    [[maybe_unused]] int threads) {
#if defined(_OPENMP)
  const ThreadLimit limit(threads);
  return kernel(arrays, sizes);
#elif defined(PY_BACKENDS_TBB)
  try {
    return arena_of(threads).execute([&] { return kernel(arrays, sizes); });
  } catch (const std::bad_alloc&) {
    return false;
  }
#else
  return kernel(arrays, sizes);
#endif
}

/// A forked child has none of its parent's threads, but OpenMP's thread pool would wait for them for ever. So a thread
/// gives up its pool before it forks. The next parallel region makes a new one.
void survive_forks() {
#if defined(_OPENMP) && defined(__GNUC__) && __GNUC__ >= 9
  pthread_atfork([] { omp_pause_resource_all(omp_pause_soft); }, nullptr, nullptr);
#endif
}
