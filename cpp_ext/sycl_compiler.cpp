// The SYCL calls that dpctl has no Python function for. They compile SYCL source at run time, or load what was compiled
// earlier, and launch a kernel over more than 2^31 work items. They wait and raise what went wrong, and read the
// device's own times.
//
// This is only host code, which any C++17 compiler builds. The SYCL runtime compiles the device code itself. dpctl's
// objects come in by their public addressof_ref(). The casters of its dpctl4pybind11.hpp would abort on a machine whose
// default device lacks USM host memory.
#include <sycl/sycl.hpp>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <variant>
#include <vector>

namespace py = pybind11;
namespace syclexp = sycl::ext::oneapi::experimental;

namespace {

/// The SYCL object behind one of dpctl's.
template <typename T>
T& behind(const py::object& object) {
  return *reinterpret_cast<T*>(object.attr("addressof_ref")().cast<std::uintptr_t>());
}

/// Whether the device's driver takes kernels that the SYCL runtime compiles from source. The runtime claims this of
/// every OpenCL device. But it compiles to SPIR-V, which is an extension there.
bool can_compile(const py::object& dpctl_device) {
  auto& device = behind<sycl::device>(dpctl_device);
  if (!device.ext_oneapi_can_build(syclexp::source_language::sycl)) return false;
  if (device.get_backend() != sycl::backend::opencl) return true;
  const auto extensions = device.get_info<sycl::info::device::extensions>();
  return std::find(extensions.begin(), extensions.end(), "cl_khr_il_program") != extensions.end();
}

/// A queue that runs its commands in order, and keeps their times if `profiled`. `wait` raises the errors of its
/// kernels.
py::object in_order_queue(const py::object& dpctl_context, const py::object& dpctl_device, bool profiled) {
  const auto raise_first = [](sycl::exception_list errors) {
    if (errors.size() != 0) std::rethrow_exception(*errors.begin());
  };
  using namespace sycl::property::queue;
  const auto properties =
      profiled ? sycl::property_list{in_order(), enable_profiling()} : sycl::property_list{in_order()};
  sycl::queue queue(behind<sycl::context>(dpctl_context), behind<sycl::device>(dpctl_device), raise_first, properties);
  const auto dpctl_queue = py::module_::import("dpctl").attr("SyclQueue");
  return dpctl_queue(py::capsule(&queue, "SyclQueueRef"));  // which copies it
}

/// A function of OpenCL, from the loader that the SYCL runtime has loaded.
template <typename Function>
Function* opencl(const char* name) {
  static void* const loader = dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_NOLOAD);
  void* const found = loader == nullptr ? nullptr : dlsym(loader, name);
  if (found == nullptr) throw std::runtime_error(std::string("no loader of OpenCL has ") + name);
  return reinterpret_cast<Function*>(found);
}
#define OPENCL(name) opencl<decltype(name)>(#name)

/// An object of OpenCL that is released at the end.
template <typename Object>
using Owned = std::unique_ptr<std::remove_pointer_t<Object>, cl_int (*)(Object)>;

void check(cl_int status, const char* what) {
  if (status != CL_SUCCESS) throw std::runtime_error(std::string(what) + ": error " + std::to_string(status));
}

using Names = std::vector<std::string>;
using Kernels = std::vector<sycl::kernel>;

/// The machine code of a program that is compiled for one device. Empty where another driver than OpenCL's runs it.
std::string machine_code(const sycl::kernel_bundle<sycl::bundle_state::executable>& program) {
  if (program.get_backend() != sycl::backend::opencl) return {};
  std::vector<Owned<cl_program>> parts;
  for (const auto part : sycl::get_native<sycl::backend::opencl>(program)) {
    parts.emplace_back(part, OPENCL(clReleaseProgram));
  }
  if (parts.size() != 1) return {};
  std::size_t size = 0;
  const auto info = OPENCL(clGetProgramInfo);
  check(info(parts[0].get(), CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr), "its machine code has no size");
  std::string code(size, 0);
  auto* to = reinterpret_cast<unsigned char*>(code.data());
  check(info(parts[0].get(), CL_PROGRAM_BINARIES, sizeof to, &to, nullptr), "its machine code cannot be had");
  return code;
}

/// Compiles a source, after `prelude`, for the queue's device. Names may be instances of templates, like
/// `vecadd<float>`. Errors name the source as `file`. Returns a kernel for each name, the kernels' names in machine
/// code, and that, by which `load` makes the same kernels. It is empty if the device's driver has none.
py::tuple compile(const py::object& dpctl_queue, const std::string& prelude, const std::string& file,
                  const std::string& text, const Names& names, const std::vector<std::string>& options) {
  const auto& queue = behind<sycl::queue>(dpctl_queue);
  Kernels kernels;
  Names in_code;
  std::string code;
  {
    const py::gil_scoped_release unlocked;
    auto source = syclexp::create_kernel_bundle_from_source(queue.get_context(), syclexp::source_language::sycl,
                                                            prelude + "\n#include \"" + file + "\"\n",
                                                            syclexp::properties{syclexp::include_files(file, text)});
    auto program =
        syclexp::build(source, syclexp::properties{syclexp::build_options(options), syclexp::registered_names(names)});
    for (const auto& name : names) {
      kernels.push_back(program.ext_oneapi_get_kernel(name));
      in_code.push_back(program.ext_oneapi_get_raw_kernel_name(name));
    }
    try {
      code = machine_code(program);
    } catch (const std::exception&) {  // the kernels are no worse for it, and are compiled again the next time
    }
  }
  return py::make_tuple(kernels, in_code, py::bytes(code));
}

/// The kernels of those names in machine code that `compile` returned for the same device.
Kernels load(const py::object& dpctl_queue, const Names& names, const std::string& code) {
  const auto& queue = behind<sycl::queue>(dpctl_queue);
  const py::gil_scoped_release unlocked;
  const Owned<cl_context> context(sycl::get_native<sycl::backend::opencl>(queue.get_context()),
                                  OPENCL(clReleaseContext));
  const Owned<cl_device_id> owned(sycl::get_native<sycl::backend::opencl>(queue.get_device()), OPENCL(clReleaseDevice));
  const cl_device_id device = owned.get();
  const auto* from = reinterpret_cast<const unsigned char*>(code.data());
  const std::size_t size = code.size();
  cl_int status = CL_SUCCESS;
  const Owned<cl_program> program(
      OPENCL(clCreateProgramWithBinary)(context.get(), 1, &device, &size, &from, nullptr, &status),
      OPENCL(clReleaseProgram));
  check(status, "it is no machine code for the device");
  check(OPENCL(clBuildProgram)(program.get(), 1, &device, "", nullptr, nullptr), "its machine code cannot be linked");
  Kernels kernels;
  for (const auto& name : names) {
    const Owned<cl_kernel> kernel(OPENCL(clCreateKernel)(program.get(), name.c_str(), &status),
                                  OPENCL(clReleaseKernel));
    check(status, "its machine code lacks a kernel");
    kernels.push_back(sycl::make_kernel<sycl::backend::opencl>(kernel.get(), queue.get_context()));
  }
  return kernels;
}

template <int dimensions>
sycl::nd_range<dimensions> range(const std::vector<std::size_t>& groups, const std::vector<std::size_t>& group) {
  sycl::range<dimensions> global, local;
  for (int at = 0; at < dimensions; ++at) {
    local[at] = group[at];
    global[at] = groups[at] * group[at];
  }
  return {global, local};
}

using Number = std::variant<std::int64_t, float, double>;

/// A size or a real number, as NumPy has it: its float64 is a float of Python, and its float32 is not.
Number number(const py::handle& given) {
  if (PyIndex_Check(given.ptr())) return given.cast<std::int64_t>();
  const double real = PyFloat_AsDouble(given.ptr());
  if (PyErr_Occurred()) throw py::error_already_set();
  if (PyFloat_Check(given.ptr())) return real;
  return static_cast<float>(real);
}

/// Starts a kernel on device memory (addresses), sizes and real numbers. The slowest dimension of groups comes first, as
/// in SYCL. Returns its event if the queue keeps times.
std::optional<sycl::event> launch(const py::object& dpctl_queue, const sycl::kernel& kernel,
                                  const std::vector<std::uintptr_t>& addresses, const py::sequence& sizes,
                                  const std::vector<std::size_t>& groups, const std::vector<std::size_t>& group) {
  if (group.size() != groups.size()) throw std::invalid_argument("groups and group differ in dimensions");
  auto& queue = behind<sycl::queue>(dpctl_queue);
  std::vector<Number> numbers;
  for (const py::handle& given : sizes) numbers.push_back(number(given));
  const py::gil_scoped_release unlocked;
  sycl::event event = queue.submit([&](sycl::handler& handler) {
    int at = 0;
    for (const std::uintptr_t address : addresses) handler.set_arg(at++, reinterpret_cast<void*>(address));
    for (const Number& each : numbers) std::visit([&](auto of_type) { handler.set_arg(at++, of_type); }, each);
    switch (group.size()) {
      case 1: return handler.parallel_for(range<1>(groups, group), kernel);
      case 2: return handler.parallel_for(range<2>(groups, group), kernel);
      case 3: return handler.parallel_for(range<3>(groups, group), kernel);
      default: throw std::invalid_argument("a kernel has 1, 2 or 3 dimensions");
    }
  });
  if (!queue.has_property<sycl::property::queue::enable_profiling>()) return std::nullopt;
  return event;
}

/// Seconds on the device from the start of one command to the end of another. Both have ended.
double seconds(const sycl::event& first, const sycl::event& last) {
  using namespace sycl::info::event_profiling;
  const auto start = first.get_profiling_info<command_start>(), end = last.get_profiling_info<command_end>();
  return 1e-9 * static_cast<double>(static_cast<std::int64_t>(end - start));  // from nanoseconds
}

/// Returns when all commands of the queue have ended; raises their first error. A CPU's runtime may also compute on the
/// waiting thread. With `aside` it does not: the thread polls until all is done.
void wait(const py::object& dpctl_queue, bool aside) {
  auto& queue = behind<sycl::queue>(dpctl_queue);
  const py::gil_scoped_release unlocked;
  if (aside) {
    while (!queue.ext_oneapi_empty()) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  queue.wait_and_throw();
}

}  // namespace

PYBIND11_MODULE(sycl_compiler, module) {
  // libsycl comes with dpctl, whose Python package has to be imported before this module.
  py::class_<sycl::kernel>(module, "Kernel", py::module_local());
  py::class_<sycl::event>(module, "Event", py::module_local());
  module.def("can_compile", &can_compile, py::arg("device"));
  module.def("in_order_queue", &in_order_queue, py::arg("context"), py::arg("device"), py::arg("profiled"));
  module.def("compile", &compile, py::arg("queue"), py::arg("prelude"), py::arg("file"), py::arg("text"),
             py::arg("names"), py::arg("options"));
  module.def("load", &load, py::arg("queue"), py::arg("names"), py::arg("code"));
  module.def("launch", &launch, py::arg("queue"), py::arg("kernel"), py::arg("addresses"), py::arg("sizes"),
             py::arg("groups"), py::arg("group"));
  module.def("wait", &wait, py::arg("queue"), py::arg("aside"));
  module.def("seconds", &seconds, py::arg("first"), py::arg("last"));
}
