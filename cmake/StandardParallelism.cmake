# The module stdpar: algorithms of C++17 with execution policies. libstdc++ has them done by oneTBB, in whose threads
# they run. Headers and library come from the wheel tbb-devel, or from the system.

function(add_standard_parallelism)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "
from importlib.metadata import files
print(next(file.locate().resolve().parent.as_posix() for file in files('tbb-devel') if file.name == 'TBBConfig.cmake'))"
    OUTPUT_VARIABLE from_wheel ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(TBB_FIND_RELEASE_ONLY ON)  # as in the wheel tbb, which users have: tbb-devel alone has a library for debugging
  find_package(TBB CONFIG COMPONENTS tbb HINTS "${from_wheel}")
  if(NOT TBB_FOUND)
    if(PY_BACKENDS_X86_64)
      set(fix "pip install tbb-devel, then build again")
    else()
      set(fix "install oneTBB's headers, for instance apt install libtbb-dev, then build again")  # there are no wheels
    endif()
    leave_out(stdpar "when this was built, there was no oneTBB" "${fix}")
  else()
    set(CMAKE_REQUIRED_LIBRARIES TBB::tbb)
    check_cxx_source_compiles("
      #include <algorithm>
      #include <execution>
      int main() {
        int one[1] = {};
        std::for_each(std::execution::par_unseq, one, one + 1, [](int& each) { each = 1; });
      }" PY_BACKENDS_COMPILER_HAS_POLICIES)
    if(PY_BACKENDS_COMPILER_HAS_POLICIES)
      add_kernel_module(stdpar TBB::tbb)
      target_compile_options(stdpar PRIVATE -fexceptions)  # which libstdc++'s algorithms handle
      target_compile_definitions(stdpar PRIVATE PY_BACKENDS_TBB)
      # Where wheels put libraries: see SyclCompiler.cmake. Elsewhere the backend loads this one first.
      set_target_properties(stdpar PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/../../../..")
    else()
      leave_out(stdpar "the standard library of this build, that of ${PY_BACKENDS_COMPILER}, has no execution policies"
                "build it again with libstdc++, for instance by g++: CXX=g++")
    endif()
  endif()
  foreach(record MODULES KERNEL_MODULES LEFT_OUT REASONS)
    set(PY_BACKENDS_${record} "${PY_BACKENDS_${record}}" PARENT_SCOPE)
  endforeach()
endfunction()
