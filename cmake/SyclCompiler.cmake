# The module sycl_compiler: host code that calls the SYCL runtime's own compiler. It needs the headers and the
# library of the SYCL runtime, and dpctl's headers, as the wheels of dpctl and intel-sycl-rt bring them.

function(add_sycl_compiler)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/cmake/locate_sycl.py"
    OUTPUT_VARIABLE found ERROR_VARIABLE reason RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE
                                                                       ERROR_STRIP_TRAILING_WHITESPACE)
  if(failed)
    if(PY_BACKENDS_X86_64)
      set(fix "pip install 'dpctl>=0.22,<0.23', then build again")
    else()
      set(fix "")  # there are no wheels of it
    endif()
    leave_out(sycl_compiler "when this was built, ${reason}" "${fix}")
    set(PY_BACKENDS_LEFT_OUT "${PY_BACKENDS_LEFT_OUT}" PARENT_SCOPE)
    set(PY_BACKENDS_REASONS "${PY_BACKENDS_REASONS}" PARENT_SCOPE)
    return()
  endif()
  list(GET found 0 library)
  list(REMOVE_AT found 0)

  pybind11_add_module(sycl_compiler MODULE NO_EXTRAS cpp_ext/sycl_compiler.cpp)
  target_include_directories(sycl_compiler SYSTEM PRIVATE ${found})
  target_compile_options(sycl_compiler PRIVATE -Wall -Wextra)
  target_link_libraries(sycl_compiler PRIVATE "${library}")
  target_link_options(sycl_compiler PRIVATE ${PY_BACKENDS_LINK_FLAGS})
  # In an environment the module lies in lib/pythonX.Y/site-packages/py_backends/_compiled and libsycl in lib.
  # Elsewhere it is found because dpctl, which is imported first, has loaded it already.
  set_target_properties(sycl_compiler PROPERTIES
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/../../../..")
  set(PY_BACKENDS_MODULES ${PY_BACKENDS_MODULES} sycl_compiler PARENT_SCOPE)

  # A wheel has the standard headers too, which the SYCL runtime takes from the system. A clone's system has a compiler.
  if(SKBUILD AND NOT SKBUILD_STATE STREQUAL "editable")
    list(TRANSFORM found PREPEND "-isystem")
    execute_process(
      COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/cmake/collect_headers.py"
              "${CMAKE_CURRENT_BINARY_DIR}/headers" "${CMAKE_CXX_COMPILER}" -DSYCL_DISABLE_FSYCL_SYCLHPP_WARNING ${found}
      ERROR_VARIABLE reason RESULT_VARIABLE failed)
    if(failed)
      message(WARNING "The wheel lacks the headers that SYCL needs on a machine without a compiler: ${reason}")
    else()
      install(DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/headers" DESTINATION py_backends/_compiled)
    endif()
  endif()
endfunction()
