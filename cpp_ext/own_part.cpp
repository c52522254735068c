// Compiled once for each module. instances.inc names its kernels. OpenMP is on where the module has it, or oneTBB.
#include "own_part.hpp"

#include "arithmetic.hpp"

#if defined(_OPENMP)
#include <omp.h>
#include <pthread.h>

#include <optional>
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

thread_local std::optional<IeeeArithmetic> of_pool;

/// While it lives, the threads of the calling thread's pool compute as IEEE 754 has it. They do so by themselves, as
/// they were started by a launch. But where the caller has another mode, another library may have started them in that.
class IeeePool {
 public:
  IeeePool(int threads, bool needed) : threads_(needed ? threads : 0) {
    if (threads_ < 2) return;
#pragma omp parallel num_threads(threads_)
    of_pool.emplace();
  }
  ~IeeePool() {
    if (threads_ < 2) return;
#pragma omp parallel num_threads(threads_)
    of_pool.reset();
  }
  IeeePool(const IeeePool&) = delete;
  IeeePool& operator=(const IeeePool&) = delete;

 private:
  const int threads_;
};
#elif defined(PY_BACKENDS_TBB)
/// The calling thread and others, `threads` at most. Each thread that calls has arenas of its own: in one that another
/// thread uses, it would wait for it. Its threads compute as the one does that makes it.
tbb::task_arena& arena_of(int threads) {
  static thread_local std::map<int, tbb::task_arena> arenas;
  return arenas.try_emplace(threads, threads).first->second;
}
#endif

}  // namespace

bool run_on_threads(UniformKernel kernel, void* const* arrays, const std::int64_t* sizes,
                    [[maybe_unused]] int threads) {
  const IeeeArithmetic of_caller;
#if defined(_OPENMP)
  const ThreadLimit limit(threads);
  const IeeePool pool(threads, of_caller.differed());
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
