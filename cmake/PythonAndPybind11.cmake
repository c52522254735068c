# The Python to build for, which is that of the active environment, and its pybind11.
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
if(NOT pybind11_DIR)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -m pybind11 --cmakedir
    OUTPUT_VARIABLE pybind11_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
set(PYBIND11_FINDPYTHON ON)
find_package(pybind11 CONFIG)
if(NOT pybind11_FOUND)
  message(FATAL_ERROR "${Python_EXECUTABLE} has no pybind11; pip install pybind11")
endif()
