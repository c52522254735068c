// Compiled once for each module. instances.inc names its kernels. OpenMP is on where the module has it.
#include "own_part.hpp"

#if defined(_OPENMP)
#include <omp.h>
#include <pthread.h>
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

/// While it lives, parallel regions that the calling thread starts have `threads` threads.
class ThreadLimit {
 public:
#if defined(_OPENMP)
  explicit ThreadLimit(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  ~ThreadLimit() { omp_set_num_threads(before_); }

 private:
  int before_;
#else
  explicit ThreadLimit(int) {}
#endif

 public:
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;
};

}  // namespace

bool run_on_threads(UniformKernel kernel, void* const* arrays, const std::int64_t* sizes, int threads) {
  const ThreadLimit limit(threads);
  return kernel(arrays, sizes);
}

/// A forked child has none of its parent's threads, but OpenMP's thread pool would wait for them for ever. So a thread
/// gives up its pool before it forks. The next parallel region makes a new one.
void survive_forks() {
#if defined(_OPENMP) && defined(__GNUC__) && __GNUC__ >= 9
  pthread_atfork([] { omp_pause_resource_all(omp_pause_soft); }, nullptr, nullptr);
#endif
}
