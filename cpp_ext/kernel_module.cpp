// The Python modules of the C++ backends. Each finds its compiled kernels and calls them on NumPy arrays in place.
//
// CMake compiles this once for all modules, whose names are in modules.inc. It links it with each module's own part
// (own_part.cpp). Nothing here knows a kernel or a variant by name.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "launch.hpp"
#include "own_part.hpp"
#include "shortcut.hpp"
#include "tiles.hpp"

namespace py = pybind11;

namespace {

/// A Python sequence as a list or tuple, whose items are read without calls.
class Items {
 public:
  Items(py::handle sequence, int expected, const char* what)
      : fast_(py::reinterpret_steal<py::object>(PySequence_Fast(sequence.ptr(), "a kernel takes sequences"))) {
    if (!fast_) throw py::error_already_set();
    if (PySequence_Fast_GET_SIZE(fast_.ptr()) != expected) {
      throw py::value_error("this kernel takes " + std::to_string(expected) + " " + what + ", not " +
                            std::to_string(PySequence_Fast_GET_SIZE(fast_.ptr())));
    }
  }
  py::handle operator[](int at) const { return PySequence_Fast_GET_ITEM(fast_.ptr(), at); }

 private:
  py::object fast_;
};

/// The data of an array that the kernel can use as it is. Any other array is an error, and is never copied.
void* data_of(py::handle item, const py::dtype& dtype, bool output) {
  if (!py::isinstance<py::array>(item) || !py::reinterpret_borrow<py::array>(item).dtype().equal(dtype)) {
    const auto given =
        py::isinstance<py::array>(item) ? py::object(item.attr("dtype")) : py::object(py::type::of(item));
    throw py::type_error(py::str("this kernel takes arrays of {}, not {}").format(dtype, given));
  }
  const auto array = py::reinterpret_borrow<py::array>(item);
  constexpr int needed = py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_ | py::detail::npy_api::NPY_ARRAY_ALIGNED_;
  if ((array.flags() & needed) != needed) throw py::value_error("a kernel takes C-contiguous and aligned arrays");
  if (output && !array.writeable()) throw py::value_error("the output is read-only");
  return const_cast<void*>(array.data());
}

/// A kernel for one number format: of this module, or of a library that was compiled since.
class Launch {
 public:
  /// `reals` says of each number, in order, whether it is a real one.
  Launch(UniformKernel kernel, OnThreads on_threads, Dtypes dtypes, int outputs, std::vector<bool> reals,
         std::string place)
      : kernel_(kernel),
        on_threads_(on_threads),
        dtypes_(std::move(dtypes)),
        arrays_(static_cast<int>(dtypes_.size())),
        inputs_(arrays_ - outputs),
        reals_(std::move(reals)),
        sizes_(static_cast<int>(reals_.size())),
        place_(std::move(place)) {
    if (arrays_ > most_arguments || sizes_ > most_arguments) throw py::value_error("too many arguments");
  }

  /// Runs the kernel. Meanwhile the interpreter lock is free, and references keep the arrays alive.
  void operator()(py::handle buffers, py::handle sizes, int threads) const {
    if (threads < 1) throw py::value_error("a kernel runs on at least one thread, not " + std::to_string(threads));
    std::array<py::object, most_arguments> alive;
    std::array<void*, most_arguments> arrays;
    std::array<std::int64_t, most_arguments> numbers;
    const Items given(buffers, arrays_, "arrays");
    for (int at = 0; at < arrays_; ++at) {
      arrays[at] = data_of(given[at], dtypes_[at], at >= inputs_);
      alive[at] = py::reinterpret_borrow<py::object>(given[at]);
    }
    const Items given_sizes(sizes, sizes_, "sizes");
    for (int at = 0; at < sizes_; ++at) numbers[at] = reals_[at] ? real(given_sizes[at]) : whole(given_sizes[at]);
    if (!launch(on_threads_, kernel_, arrays.data(), numbers.data(), threads, place_)) throw py::error_already_set();
  }

 protected:
  const Dtypes& dtypes() const { return dtypes_; }

 private:
  static std::int64_t whole(py::handle given) {
    const std::int64_t number = PyLong_AsLongLong(given.ptr());
    if (PyErr_Occurred()) throw py::error_already_set();
    if (number < 0) throw py::value_error("a size is negative: " + std::to_string(number));
    return number;
  }

  /// The bits of a double, as an entry takes a real number.
  static std::int64_t real(py::handle given) {
    const double number = PyFloat_AsDouble(given.ptr());
    if (PyErr_Occurred()) throw py::error_already_set();
    std::int64_t bits;
    static_assert(sizeof bits == sizeof number);
    std::memcpy(&bits, &number, sizeof bits);
    return bits;
  }

  UniformKernel kernel_;
  OnThreads on_threads_;
  Dtypes dtypes_;
  int arrays_, inputs_;
  std::vector<bool> reals_;
  int sizes_;
  std::string place_;
};

/// A kernel of this module, for one instruction set and number format. It has one output, and no real numbers.
class Kernel : public Launch {
 public:
  Kernel(const Instance& instance, const Format& format)
      : Launch(format.run, run_on_threads, dtypes_of(instance, format), 1,
               std::vector<bool>(static_cast<std::size_t>(instance.sizes)), place_of(instance)),
        instance_(instance),
        dtype_(format.dtypes[0]) {}

  std::string kernel() const { return instance_.kernel; }
  std::string variant() const { return instance_.variant; }
  std::string instruction_set() const { return instance_.instruction_set; }
  std::string sha256() const { return instance_.sha256; }
  std::string dtype() const { return dtype_; }
  py::dtype result_dtype() const { return dtypes().back(); }

  /// A function that runs the kernel on arrays that it can take as they are. Of some number formats it takes that of
  /// the arrays.
  py::object shortcut(const Shortcut::Shapes& shapes, bool in_place, int threads,
                      const std::vector<std::string>& dtypes) const {
    return Shortcut::function(std::make_unique<Shortcut>(instance_, shapes, in_place, threads, dtypes));
  }

 private:
  const Instance& instance_;
  const char* dtype_;
};

/// A kernel of a library, by the addresses of its entry and of what runs it on threads. The caller keeps the library.
Launch launch_at(std::uintptr_t kernel, std::uintptr_t on_threads, const std::vector<std::string>& dtypes, int outputs,
                 std::vector<bool> reals, std::string place) {
  return {reinterpret_cast<UniformKernel>(kernel),
          reinterpret_cast<OnThreads>(on_threads),
          Dtypes(dtypes.begin(), dtypes.end()),
          outputs,
          std::move(reals),
          std::move(place)};
}

std::vector<Kernel> kernels() {
  std::vector<Kernel> all;
  for (int module_at = 0; module_at < count_of_instances; ++module_at) {
    const Instance& instance = *instances[module_at];
    for (int at = 0; at < instance.count_of_formats; ++at) all.emplace_back(instance, instance.formats[at]);
  }
  return all;
}

/// Whether any source of this module is compiled for an instruction set. For some sets few are, and a build may leave
/// sets out.
[[maybe_unused]] bool has_instance_for(const std::string& set) {
  const auto is_for_it = [&](const Instance* each) { return each->instruction_set == set; };
  return std::any_of(instances, instances + count_of_instances, is_for_it);
}

/// Every instruction set that sources are compiled for, best first. Each has its name, the reason to give where it is
/// missing, and whether this CPU has it. For wide registers the operating system has to support it, too.
std::vector<std::tuple<std::string, std::string, bool>> instruction_sets() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512cd");
  unsigned a, b, c, d;  // __builtin_cpu_supports knows F16C in few compilers
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && f16c;
  std::vector<std::tuple<std::string, std::string, bool>> sets = {
      {"avx512", "this CPU lacks AVX-512 (F, VL, BW, DQ and CD)", avx512 && avx2},
      {"avx2", "this CPU lacks AVX2, FMA and F16C", avx2},
      {"sse", "", true}};
  if (has_instance_for("amx")) {
    const auto [_, why_not_below, below] = sets[0];
    const std::string& why = why_no_tiles();
    sets.insert(sets.begin(), {"amx", why.empty() ? why_not_below : why, why.empty() && below});
  }
  sets.erase(
      std::remove_if(sets.begin(), sets.end(), [](const auto& set) { return !has_instance_for(std::get<0>(set)); }),
      sets.end());
  return sets;
#else
  return {{"baseline", "", true}};
#endif
}

void define(py::module_& module) {
  survive_forks();
  py::module_::import("ml_dtypes");  // tells NumPy the name bfloat16
  // The types are local to the module: the modules of other backends bind the same classes under the same names.
  py::class_<Launch>(module, "Launch", py::module_local())
      .def(py::init(&launch_at), py::arg("kernel"), py::arg("on_threads"), py::arg("dtypes"), py::arg("outputs"),
           py::arg("reals"), py::arg("place"))
      .def("__call__", &Launch::operator(), py::arg("buffers"), py::arg("sizes"), py::arg("threads"));
  py::class_<Kernel, Launch>(module, "Kernel", py::module_local())
      .def_property_readonly("kernel", &Kernel::kernel)
      .def_property_readonly("variant", &Kernel::variant)
      .def_property_readonly("instruction_set", &Kernel::instruction_set)
      .def_property_readonly("dtype", &Kernel::dtype)
      .def_property_readonly("result_dtype", &Kernel::result_dtype)
      .def_property_readonly("sha256", &Kernel::sha256)
      .def("shortcut", &Kernel::shortcut, py::arg("shapes"), py::arg("in_place"), py::arg("threads"),
           py::arg("dtypes"));
  module.def("kernels", &kernels);
  module.def("instruction_sets", &instruction_sets);
}

}  // namespace

// Python looks only for the function of the module that it loads. The others are not called there.
#define MODULE(name) \
  PYBIND11_MODULE(name, module) { define(module); }
#include "modules.inc"
