// The shortcut from a Python call to a compiled kernel, for arrays that the kernel can take as they are.
//
// For a small array, Python's checks take longer than the kernel. Here they take a fraction of a microsecond. Whatever
// is not plainly fit is left to Python, which converts it or reports the error.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "launch.hpp"

namespace {

/// The dimensions of a kernel's arrays, inputs and then output.
using Dtypes = std::vector<pybind11::dtype>;

inline Dtypes dtypes_of(const Instance& instance, const Format& format) {
  Dtypes dtypes;
  for (int at = 0; at < instance.arrays; ++at) dtypes.emplace_back(format.dtypes[at]);
  return dtypes;
}

class Shortcut {
 public:
  /// Dimension d of array i has size number `shapes[i][d]`. If that is negative, its length is always the opposite.
  using Shapes = std::vector<std::vector<int>>;

  /// It takes those number formats of the instance that `dtypes` names.
  Shortcut(const Instance& instance, Shapes shapes, bool in_place, int threads, const std::vector<std::string>& dtypes)
      : instance_(instance),
        shapes_(std::move(shapes)),
        sizes_of_arrays_(checked_sizes_of_arrays()),
        in_place_(in_place),
        threads_(threads),
        place_(place_of(instance)) {
    for (int at = 0; at < instance.count_of_formats; ++at) {
      const Format& format = instance.formats[at];
      if (std::find(dtypes.begin(), dtypes.end(), format.dtypes[0]) == dtypes.end()) continue;
      formats_.push_back({format.run, dtypes_of(instance, format)});
    }
    if (threads < 1) throw pybind11::value_error("a kernel runs on at least one thread");
  }

  /// The Python function. It takes the inputs, the output or None for a new one, and the sizes that no array has. It
  /// returns the output, or None if something is not plainly fit; then nothing was done.
  static pybind11::object function(std::unique_ptr<Shortcut> shortcut) {
    static PyMethodDef definition = {"shortcut", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&called)),
                                     METH_FASTCALL,
                                     "Run the kernel on its inputs, its output or None for a new one, and its numbers. "
                                     "Returns the output, or None if it declines."};
    pybind11::capsule self(shortcut.get(), [](void* owned) { delete static_cast<Shortcut*>(owned); });
    shortcut.release();
    PyObject* const made = PyCFunction_New(&definition, self.ptr());
    if (made == nullptr) throw pybind11::error_already_set();
    return pybind11::reinterpret_steal<pybind11::object>(made);
  }

 private:
  using Array = pybind11::detail::PyArray_Proxy;
  using Numpy = pybind11::detail::npy_api;

  static PyObject* called(PyObject* self, PyObject* const* given, Py_ssize_t count) {
    return static_cast<const Shortcut*>(PyCapsule_GetPointer(self, nullptr))->call(given, count);
  }

  static PyObject* decline() { Py_RETURN_NONE; }

  PyObject* call(PyObject* const* given, Py_ssize_t count) const {
    const int numbers = instance_.sizes - sizes_of_arrays_;
    if (count != instance_.arrays + numbers || Py_TYPE(given[0]) != numpy_.PyArray_Type_) return decline();
    const Prepared* const format = format_of(array(given[0])->descr);
    if (format == nullptr) return decline();
    const auto last = static_cast<std::size_t>(instance_.arrays - 1);
    std::array<std::int64_t, most_arguments> sizes;
    sizes.fill(unknown);
    for (int at = 0; at < numbers; ++at) {
      std::int64_t& number = sizes[static_cast<std::size_t>(sizes_of_arrays_ + at)];
      number = PyLong_AsLongLong(given[instance_.arrays + at]);
      if (number < 0) {
        PyErr_Clear();
        return decline();
      }
    }
    for (std::size_t at = 0; at < last; ++at) {
      if (!fits(given[at], format->dtypes[at], shapes_[at], sizes)) return decline();
    }
    // Some kernels take no empty arrays, and others are quick enough in Python.
    const auto end = sizes.begin() + sizes_of_arrays_;
    if (std::find(sizes.begin(), end, 0) != end) return decline();
    pybind11::object output;
    if (given[last] == Py_None) {
      output = empty(format->dtypes[last], shapes_[last], sizes);
      if (!output) return decline();
    } else {
      if (!fits(given[last], format->dtypes[last], shapes_[last], sizes) || !writable(given[last])) return decline();
      for (std::size_t at = 0; at < last; ++at) {
        if (!apart(bytes(given[at], format->dtypes[at]), bytes(given[last], format->dtypes[last]))) return decline();
      }
      output = pybind11::reinterpret_borrow<pybind11::object>(given[last]);
    }
    std::array<void*, most_arguments> data;
    for (std::size_t at = 0; at < last; ++at) data[at] = array(given[at])->data;
    data[last] = array(output.ptr())->data;
    if (!launch(run_on_threads, format->run, data.data(), sizes.data(), threads_, place_)) return nullptr;
    return output.release().ptr();
  }

  static const Array* array(PyObject* item) { return pybind11::detail::array_proxy(item); }

  struct Prepared {
    UniformKernel run;
    Dtypes dtypes;
  };

  const Prepared* format_of(PyObject* dtype) const {
    for (const Prepared& format : formats_) {
      if (same(dtype, format.dtypes[0])) return &format;
    }
    return nullptr;
  }

  /// Whether two dtypes are the same. A dtype that NumPy itself lacks may have several objects for one type.
  static bool same(PyObject* given, const pybind11::dtype& wanted) {
    if (given == wanted.ptr()) return true;
    constexpr int first_of_others = 256;  // NPY_USERDEF
    if (wanted.num() < first_of_others) return false;
    const auto dtype = pybind11::reinterpret_borrow<pybind11::dtype>(given);
    return dtype.num() == wanted.num() && dtype.byteorder() == wanted.byteorder();
  }

  /// Whether an array is just what the kernel takes. The array sets sizes that are still unknown.
  bool fits(PyObject* item, const pybind11::dtype& dtype, const std::vector<int>& shape,
            std::array<std::int64_t, most_arguments>& sizes) const {
    if (Py_TYPE(item) != numpy_.PyArray_Type_) return false;  // nor a subclass, which may mean something else
    const Array* const given = array(item);
    constexpr int needed = Numpy::NPY_ARRAY_C_CONTIGUOUS_ | Numpy::NPY_ARRAY_ALIGNED_;
    if (!same(given->descr, dtype) || (given->flags & needed) != needed) return false;
    if (given->nd != static_cast<int>(shape.size())) return false;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] >= 0 && sizes[static_cast<std::size_t>(shape[d])] == unknown) {
        sizes[static_cast<std::size_t>(shape[d])] = given->dimensions[d];
      }
      if (length(shape[d], sizes) != given->dimensions[d]) return false;
    }
    return true;
  }

  /// The length of a dimension, whose size is known by now.
  static std::int64_t length(int dimension, const std::array<std::int64_t, most_arguments>& sizes) {
    return dimension < 0 ? -dimension : sizes[static_cast<std::size_t>(dimension)];
  }

  static bool writable(PyObject* item) {
    constexpr int warns = static_cast<int>(1u << 31);  // NPY_ARRAY_WARN_ON_WRITE
    return (array(item)->flags & (Numpy::NPY_ARRAY_WRITEABLE_ | warns)) == Numpy::NPY_ARRAY_WRITEABLE_;
  }

  /// The bytes of an array, and its dimensions.
  struct Bytes {
    std::uintptr_t begin, end;
    const Array* array;
  };

  static Bytes bytes(PyObject* item, const pybind11::dtype& dtype) {
    const Array* const given = array(item);
    auto count = static_cast<std::uintptr_t>(dtype.itemsize());
    for (int d = 0; d < given->nd; ++d) count *= static_cast<std::uintptr_t>(given->dimensions[d]);
    const auto begin = reinterpret_cast<std::uintptr_t>(given->data);
    return {begin, begin + count, given};
  }

  /// Whether the kernel may write to `output` while it reads `input`: they share no byte, or are the same array.
  bool apart(const Bytes& input, const Bytes& output) const {
    if (input.end <= output.begin || output.end <= input.begin) return true;
    const Array *const reads = input.array, *const writes = output.array;
    return in_place_ && input.begin == output.begin && reads->nd == writes->nd &&
           std::equal(reads->dimensions, reads->dimensions + reads->nd, writes->dimensions);
  }

  /// A new array; null, and no error, where NumPy makes none.
  pybind11::object empty(const pybind11::dtype& dtype, const std::vector<int>& shape,
                         const std::array<std::int64_t, most_arguments>& sizes) const {
    std::array<Py_intptr_t, most_arguments> dimensions;
    for (std::size_t d = 0; d < shape.size(); ++d) dimensions[d] = length(shape[d], sizes);
    dtype.inc_ref();  // NumPy takes this reference
    PyObject* const made =
        numpy_.PyArray_NewFromDescr_(numpy_.PyArray_Type_, dtype.ptr(), static_cast<int>(shape.size()),
                                     dimensions.data(), nullptr, nullptr, 0, nullptr);
    if (made == nullptr) PyErr_Clear();
    return pybind11::reinterpret_steal<pybind11::object>(made);
  }

  /// Checks what `call` relies on: every array has its shape, and the inputs tell the first sizes. The others, which no
  /// array has, are given as numbers.
  int checked_sizes_of_arrays() const {
    if (static_cast<int>(shapes_.size()) != instance_.arrays) throw pybind11::value_error("a shape for each array");
    std::vector<bool> told(static_cast<std::size_t>(instance_.sizes), false);
    int largest = -1;
    for (std::size_t at = 0; at < shapes_.size(); ++at) {
      if (shapes_[at].size() > most_arguments) throw pybind11::value_error("too many dimensions");
      for (const int size : shapes_[at]) {
        if (size >= instance_.sizes) throw pybind11::value_error("no such size");
        largest = std::max(largest, size);
        if (size >= 0 && at + 1 < shapes_.size()) told[static_cast<std::size_t>(size)] = true;
      }
    }
    const auto end = told.begin() + largest + 1;
    if (std::find(told.begin(), end, false) != end) throw pybind11::value_error("a size in no input");
    return largest + 1;
  }

  static constexpr std::int64_t unknown = -1;

  const Instance& instance_;
  const Shapes shapes_;
  const int sizes_of_arrays_;  ///< how many sizes the inputs tell
  const bool in_place_;
  const int threads_;
  const std::string place_;
  const Numpy& numpy_ = Numpy::get();
  std::vector<Prepared> formats_;
};

}  // namespace
