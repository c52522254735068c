// How a module runs a kernel, on a number of threads and without the interpreter lock.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <exception>
#include <new>
#include <string>

#include "own_part.hpp"

namespace {

/// Runs a kernel on the caller's data. The caller holds the interpreter lock, and references that keep the data alive.
/// Returns false, with an error of Python set, if the kernel found no memory for its own use, or threw an exception.
inline bool launch(OnThreads on_threads, UniformKernel kernel, void* const* arrays, const std::int64_t* sizes,
                   int threads, const std::string& place) {
  bool done = false;
  std::string thrown;
  PyThreadState* const unlocked = PyEval_SaveThread();
  try {
    done = on_threads(kernel, arrays, sizes, threads);
  } catch (const std::bad_alloc&) {
    done = false;
  } catch (const std::exception& exception) {
    thrown = exception.what();
  } catch (...) {
    thrown = "it is no std::exception";
  }
  PyEval_RestoreThread(unlocked);
  if (!thrown.empty()) {
    PyErr_Format(PyExc_RuntimeError, "%s throws an exception: %s", place.c_str(), thrown.c_str());
  } else if (!done) {
    PyErr_Format(PyExc_MemoryError, "no memory for the workspace of %s", place.c_str());
  }
  return done;
}

/// Where the source of a kernel that was compiled ahead lies.
inline std::string place_of(const Instance& instance) {
  return std::string("kernels/") + instance.kernel + "/" + instance.variant;
}

}  // namespace
