# Extension modules made of kernel sources. Each source is compiled for several instruction sets.
include(CheckCXXCompilerFlag)
include(CheckCXXSourceCompiles)

check_cxx_source_compiles("
  #if !defined(__x86_64__)
  #error not x86-64
  #endif
  int main() {}" PY_BACKENDS_X86_64)

set(PY_BACKENDS_COMPILER "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
try_compile(PY_BACKENDS_COMPILER_FITS
  "${CMAKE_CURRENT_BINARY_DIR}/compiler_check" "${CMAKE_CURRENT_LIST_DIR}/compiler_check.cpp")
if(NOT PY_BACKENDS_COMPILER_FITS)
  message(FATAL_ERROR "${PY_BACKENDS_COMPILER} cannot compile this: set CXX to g++ 11 or newer, or to clang 14 or newer")
endif()
set(PY_BACKENDS_INSTRUCTION_SETS "")
set(PY_BACKENDS_NAMED_SETS "")  # those for which only sources that name them are compiled
set(PY_BACKENDS_MODULES "")
set(PY_BACKENDS_KERNEL_MODULES "")  # those made of kernel sources
set(PY_BACKENDS_LEFT_OUT "")
set(PY_BACKENDS_REASONS "")

# Whatever CXXFLAGS say, an instance is compiled for its instruction set and no other CPU, and obeys IEEE 754. It is not
# optimised together with the rest of the program, which could move its instructions there. Sums of integers wrap
# around. No kernel reads errno, by which a root would tell of a negative number: it would be one of a vector no more.
set(PY_BACKENDS_INSTANCE_FLAGS -fno-lto -fno-fast-math -fno-math-errno -fwrapv)
# `#pragma omp simd` needs no OpenMP library, so every source may use it. g++ makes inline variables one for the whole
# process, which part_instances.cmake could not make local.
set(PY_BACKENDS_FLAGS_OF_SOME_COMPILERS -fopenmp-simd -fno-gnu-unique)
foreach(flag IN LISTS PY_BACKENDS_FLAGS_OF_SOME_COMPILERS)
  string(MAKE_C_IDENTIFIER "PY_BACKENDS_COMPILER_HAS${flag}" known)
  check_cxx_compiler_flag(${flag} ${known})
  if(${known})
    list(APPEND PY_BACKENDS_INSTANCE_FLAGS ${flag})
  endif()
endforeach()
if(PY_BACKENDS_X86_64)
  list(APPEND PY_BACKENDS_INSTANCE_FLAGS -march=x86-64 -mtune=generic)
endif()
# Else g++ links start-up code that flushes subnormals, in the whole process that loads a module. -Ofast asks for it too.
set(PY_BACKENDS_LINK_FLAGS -O2 -fno-fast-math -fno-unsafe-math-optimizations)

# add_instruction_set(NAME FLAG...): compile sources for this set, too, if the compiler can.
function(add_instruction_set name)
  if(PY_BACKENDS_ONLY AND NOT name IN_LIST PY_BACKENDS_ONLY)
    return()
  endif()
  string(JOIN " " flags ${ARGN})
  check_cxx_compiler_flag("${flags}" "PY_BACKENDS_COMPILER_HAS_${name}")
  if(PY_BACKENDS_COMPILER_HAS_${name})
    set(PY_BACKENDS_FLAGS_${name} "${ARGN}" PARENT_SCOPE)
    set(PY_BACKENDS_INSTRUCTION_SETS ${PY_BACKENDS_INSTRUCTION_SETS} ${name} PARENT_SCOPE)
  endif()
endfunction()

# add_instances(MODULE KERNEL VARIANT SOURCE): compile SOURCE for each of its instruction sets, as part of MODULE.
#
# Adds to the caller's `table` of instances and to its `sources`.
function(add_instances module INSTANCE_KERNEL INSTANCE_VARIANT INSTANCE_SOURCE)
  execute_process(COMMAND_ERROR_IS_FATAL ANY OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE said
    COMMAND "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/py_backends/source_head.py" "${INSTANCE_SOURCE}"
            "${PY_BACKENDS_INSTRUCTION_SETS}" "${PY_BACKENDS_NAMED_SETS}")
  string(REGEX MATCH "^([^\n]*)\n([^\n]*)\n?(.*)$" _ "${said}")
  set(INSTANCE_SHA256 "${CMAKE_MATCH_1}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_MATCH_2})
  string(REGEX MATCHALL "[^\n]+" compiled_for "${CMAKE_MATCH_3}")
  foreach(line IN LISTS compiled_for)
    string(REPLACE "," ";" formats "${line}")
    list(POP_FRONT formats INSTANCE_SET)
    set(INSTANCE_FORMATS "")
    foreach(format IN LISTS formats)
      string(APPEND INSTANCE_FORMATS "    Entry<&${INSTANCE_KERNEL}<dtypes::${format}>>::format(),\n")
    endforeach()
    list(GET formats 0 INSTANCE_FORMAT)
    set(INSTANCE_SYMBOL "${module}_${INSTANCE_KERNEL}_${INSTANCE_VARIANT}_${INSTANCE_SET}")
    set(source "${CMAKE_CURRENT_BINARY_DIR}/${module}/${INSTANCE_SYMBOL}.cpp")
    configure_file(cpp_ext/instance.cpp.in "${source}" @ONLY)
    set_source_files_properties("${source}" PROPERTIES
      COMPILE_OPTIONS "${PY_BACKENDS_INSTANCE_FLAGS};${PY_BACKENDS_FLAGS_${INSTANCE_SET}}")
    list(APPEND sources "${source}")
    string(APPEND table "INSTANCE(${INSTANCE_SYMBOL})\n")
  endforeach()
  set(sources "${sources}" PARENT_SCOPE)
  set(table "${table}" PARENT_SCOPE)
endfunction()

# add_module_of_instances(MODULE TABLE SOURCES LIBRARY...): the module that calls the instances, with its libraries.
function(add_module_of_instances module table sources)
  set(generated "${CMAKE_CURRENT_BINARY_DIR}/${module}")
  file(CONFIGURE OUTPUT "${generated}/instances.inc" CONTENT "${table}" @ONLY)
  pybind11_add_module(${module} MODULE NO_EXTRAS cpp_ext/own_part.cpp ${sources})
  # Kernels do not throw. The module of a library that does says so after this.
  target_compile_options(${module} PRIVATE -Wall -Wextra -fno-exceptions)
  target_include_directories(${module} PRIVATE cpp_ext "${generated}")
  target_link_libraries(${module} PRIVATE kernel_module ${ARGN})
  target_link_options(${module} PRIVATE ${PY_BACKENDS_LINK_FLAGS})
  set(PY_BACKENDS_KERNEL_MODULES ${PY_BACKENDS_KERNEL_MODULES} ${module} PARENT_SCOPE)
  set(objects "$<FILTER:$<TARGET_OBJECTS:${module}>,INCLUDE,/${module}_[^/]*$>")
  add_custom_command(TARGET ${module} PRE_LINK VERBATIM COMMAND_EXPAND_LISTS
    COMMAND "${CMAKE_COMMAND}" "-DOBJCOPY=${CMAKE_OBJCOPY}" "-DOBJECTS=$<JOIN:${objects},\\;>"
            -P "${PROJECT_SOURCE_DIR}/cmake/part_instances.cmake")
  set(PY_BACKENDS_MODULES ${PY_BACKENDS_MODULES} ${module} PARENT_SCOPE)
endfunction()

# add_kernel_module(BACKEND LIBRARY...): the module BACKEND, from every kernels/KERNEL/VARIANT/BACKEND.cpp.
function(add_kernel_module backend)
  set(table "")
  set(sources "")
  file(GLOB files CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/kernels/*/*/${backend}.cpp")
  foreach(file IN LISTS files)
    string(REGEX MATCH "([^/]+)/([^/]+)/[^/]+$" _ "${file}")
    add_instances(${backend} ${CMAKE_MATCH_1} ${CMAKE_MATCH_2} "${file}")
  endforeach()
  add_module_of_instances(${backend} "${table}" "${sources}" ${ARGN})
  set(PY_BACKENDS_MODULES ${PY_BACKENDS_MODULES} PARENT_SCOPE)
  set(PY_BACKENDS_KERNEL_MODULES ${PY_BACKENDS_KERNEL_MODULES} PARENT_SCOPE)
endfunction()

# add_ceilings(LIBRARY...): the module ceilings, from cpp_ext/ceilings/KERNEL.cpp. It measures what the machine can do.
function(add_ceilings)
  set(table "")
  set(sources "")
  file(GLOB files CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/cpp_ext/ceilings/*.cpp")
  foreach(file IN LISTS files)
    get_filename_component(kernel "${file}" NAME_WE)
    add_instances(ceilings ${kernel} ceiling "${file}")
  endforeach()
  # Optimised in every build: a ceiling is the machine's. Under one of unoptimised code, right rows seem impossible.
  set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS -O3)
  add_module_of_instances(ceilings "${table}" "${sources}" ${ARGN})
  set(PY_BACKENDS_MODULES ${PY_BACKENDS_MODULES} PARENT_SCOPE)
  set(PY_BACKENDS_KERNEL_MODULES ${PY_BACKENDS_KERNEL_MODULES} PARENT_SCOPE)
endfunction()

# add_what_kernel_modules_share(): compile this once, since it takes as long as most kernels do.
function(add_what_kernel_modules_share)
  if(NOT PY_BACKENDS_KERNEL_MODULES)
    return()
  endif()
  list(TRANSFORM PY_BACKENDS_KERNEL_MODULES REPLACE "(.+)" "MODULE(\\1)\n" OUTPUT_VARIABLE modules)
  string(JOIN "" modules ${modules})
  set(generated "${CMAKE_CURRENT_BINARY_DIR}/kernel_module")
  file(CONFIGURE OUTPUT "${generated}/modules.inc" CONTENT "${modules}" @ONLY)
  add_library(kernel_module OBJECT cpp_ext/kernel_module.cpp)
  set_target_properties(kernel_module PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(kernel_module PRIVATE -Wall -Wextra)
  target_include_directories(kernel_module PRIVATE cpp_ext "${generated}")
  target_link_libraries(kernel_module PRIVATE pybind11::module)
endfunction()

# leave_out(MODULE REASON FIX): record why a module is not built, to be reported at run time.
function(leave_out module reason fix)
  message(STATUS "Without ${module}: ${reason}")
  string(REGEX REPLACE "[\n;\"\\\\]+" " " reason "${reason}")  # neither JSON's nor CMake's own separators
  set(PY_BACKENDS_LEFT_OUT ${PY_BACKENDS_LEFT_OUT} ${module} PARENT_SCOPE)
  set(PY_BACKENDS_REASONS ${PY_BACKENDS_REASONS}
      "\"${module}\": {\"reason\": \"${reason}\", \"fix\": \"${fix}\"}" PARENT_SCOPE)
endfunction()

# json_list(VARIABLE TEXT...): the texts as a list of JSON.
function(json_list variable)
  list(JOIN ARGN "\", \"" joined)
  if(ARGN)
    set(${variable} "[\"${joined}\"]" PARENT_SCOPE)
  else()
    set(${variable} "[]" PARENT_SCOPE)
  endif()
endfunction()

# place_modules(): copy what was built to where Python finds it: into a wheel, else into PY_BACKENDS_PLACE.
#
# That is beside the sources. A build that users should not run goes to another folder, which the environment variable
# PY_BACKENDS_COMPILED then names.
function(place_modules)
  string(JOIN ",\n    " left_out ${PY_BACKENDS_REASONS})
  set(record "${CMAKE_CURRENT_BINARY_DIR}/build.${Python_SOABI}.json")
  # How a source is compiled that was not there, maybe by another compiler: py_backends/backend/_cpp_at_run_time.py.
  set(flags ${PY_BACKENDS_INSTANCE_FLAGS})
  list(REMOVE_ITEM flags ${PY_BACKENDS_FLAGS_OF_SOME_COMPILERS})
  json_list(all_flags ${flags})
  json_list(some_flags ${PY_BACKENDS_FLAGS_OF_SOME_COMPILERS})
  json_list(link_flags ${PY_BACKENDS_LINK_FLAGS})
  set(openmp "")
  if(OpenMP_CXX_FOUND)
    set(openmp -fopenmp)  # clang's own for it, -fopenmp=libomp, is none of g++
  endif()
  json_list(openmp_flags ${openmp} -fno-exceptions)
  set(set_flags "")
  foreach(set IN LISTS PY_BACKENDS_INSTRUCTION_SETS)
    json_list(flags ${PY_BACKENDS_FLAGS_${set}})
    list(APPEND set_flags "\"${set}\": ${flags}")
  endforeach()
  string(JOIN ",\n      " set_flags ${set_flags})
  file(CONFIGURE OUTPUT "${record}" @ONLY CONTENT [[{
  "compiler": "@PY_BACKENDS_COMPILER@",
  "flags": {
    "all": @all_flags@,
    "of_some_compilers": @some_flags@,
    "link": @link_flags@,
    "modules": {
      "cpp": ["-fno-exceptions"],
      "openmp": @openmp_flags@,
      "avx": @openmp_flags@,
      "stdpar": ["-DPY_BACKENDS_TBB"]
    },
    "sets": {
      @set_flags@
    }
  },
  "left_out": {
    @left_out@
  }
}
]])
  if(SKBUILD AND NOT SKBUILD_STATE STREQUAL "editable")
    install(TARGETS ${PY_BACKENDS_MODULES} LIBRARY DESTINATION py_backends/_compiled)
    install(FILES "${record}" DESTINATION py_backends/_compiled)
    return()
  endif()
  # Modules are built apart and copied, so that the preset that was built last is the one that runs.
  set(folder "${PY_BACKENDS_PLACE}")
  file(MAKE_DIRECTORY "${folder}")
  set(copies "")
  foreach(module IN LISTS PY_BACKENDS_MODULES)
    list(APPEND copies COMMAND "${CMAKE_COMMAND}" -E copy_if_different "$<TARGET_FILE:${module}>" "${folder}")
  endforeach()
  # A module that is left out now must not run from an earlier build.
  set(removals "")
  foreach(module IN LISTS PY_BACKENDS_LEFT_OUT)
    list(APPEND removals COMMAND "${CMAKE_COMMAND}" -E rm -f "${folder}/${module}.${Python_SOABI}.so")
  endforeach()
  add_custom_target(place ALL
    COMMAND "${CMAKE_COMMAND}" -E copy_if_different "${record}" "${folder}"
    ${copies}
    ${removals}
    VERBATIM)
  if(PY_BACKENDS_MODULES)
    add_dependencies(place ${PY_BACKENDS_MODULES})
  endif()
endfunction()
