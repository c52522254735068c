// How a module runs one of its kernels, on a number of threads and without the interpreter lock.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>

#include "own_part.hpp"

namespace {

/// Runs a kernel on the caller's data. The caller holds the interpreter lock, and references that keep the data alive.
/// Returns false, with Python's MemoryError set, if the kernel found no memory for its own use.
inline bool launch(const Instance& instance, UniformKernel kernel, void* const* arrays, const std::int64_t* sizes,
                   int threads) {
  PyThreadState* const unlocked = PyEval_SaveThread();
  const bool done = run_on_threads(kernel, arrays, sizes, threads);
  PyEval_RestoreThread(unlocked);
  if (!done) {
    PyErr_Format(PyExc_MemoryError, "no memory for the workspace of kernels/%s/%s", instance.kernel, instance.variant);
  }
  return done;
}

}  // namespace
