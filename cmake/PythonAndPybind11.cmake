# The Python to build for, which is that of the active environment, and its pybind11.
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
if(NOT pybind11_DIR)
  # As it is, since `-m pybind11 --cmakedir` quotes a path for a shell, one with a space for instance.
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "import os, pybind11; os.write(1, os.fsencode(pybind11.get_cmake_dir()))"
    OUTPUT_VARIABLE pybind11_DIR ERROR_VARIABLE pybind11_error)
endif()
set(PYBIND11_FINDPYTHON ON)
find_package(pybind11 CONFIG)
if(NOT pybind11_FOUND)
  string(REGEX MATCH "[^\n]*Error[^\n]*" why "${pybind11_error}")
  message(FATAL_ERROR "${Python_EXECUTABLE} has no pybind11 that CMake finds. ${why}\npip install pybind11")
endif()
