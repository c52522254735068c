// How a module runs one of its kernels: on a number of threads, and without the interpreter lock.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>

#include "instance.hpp"

#if defined(_OPENMP)
#include <omp.h>
#include <pthread.h>
#endif

namespace {

/// For as long as it lives, parallel regions that the calling thread starts have `threads` threads.
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

/// A child that is forked has none of its parent's threads, but OpenMP's pool of them would wait for them for ever. So
/// the pool of the thread that forks is given up before; the next parallel region makes a new one.
inline void survive_forks() {
#if defined(_OPENMP) && defined(__GNUC__) && __GNUC__ >= 9
  pthread_atfork([] { omp_pause_resource_all(omp_pause_soft); }, nullptr, nullptr);
#endif
}

/// Run a kernel on data of the caller, who holds the interpreter lock, and references that keep the data alive.
/// Returns false, with Python's MemoryError set, where the kernel found no memory for its own use.
inline bool launch(const Instance& instance, UniformKernel kernel, void* const* arrays, const std::int64_t* sizes,
                   int threads) {
  PyThreadState* const unlocked = PyEval_SaveThread();
  bool done;
  {
    const ThreadLimit limit(threads);
    done = kernel(arrays, sizes);
  }
  PyEval_RestoreThread(unlocked);
  if (!done) {
    PyErr_Format(PyExc_MemoryError, "no memory for the workspace of kernels/%s/%s", instance.kernel, instance.variant);
  }
  return done;
}

}  // namespace
