// How a module runs a kernel, on a number of threads and without the interpreter lock.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>

#include "own_part.hpp"

namespace {

/// Runs a kernel on the caller's data. The caller holds the interpreter lock, and references that keep the data alive.
/// Returns false, with Python's MemoryError set, if the kernel found no memory for its own use.
inline bool launch(OnThreads on_threads, UniformKernel kernel, void* const* arrays, const std::int64_t* sizes,
                   int threads, const std::string& place) {
  PyThreadState* const unlocked = PyEval_SaveThread();
  const bool done = on_threads(kernel, arrays, sizes, threads);
  PyEval_RestoreThread(unlocked);
  if (!done) PyErr_Format(PyExc_MemoryError, "no memory for the workspace of %s", place.c_str());
  return done;
}

/// Where the source of a kernel that was compiled ahead lies.
inline std::string place_of(const Instance& instance) {
  return std::string("kernels/") + instance.kernel + "/" + instance.variant;
}

}  // namespace
