# cmake -DNM=... "-DOBJECTS=a.o;b.o" -P check_instances.cmake
#
# Fails if an object file of a kernel instance defines a weak symbol: an inline function or template that the
# linker merges over the whole module. It might keep the AVX-512 copy for everyone, and an older CPU stops there.
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND "${NM}" -C "${object}" OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  # What describes a type is data, the same for all, and only sanitizers ask for it.
  string(REGEX REPLACE "[^\n]* typeinfo [^\n]*\n" "" symbols "${symbols}")
  if(symbols MATCHES "[0-9a-f]+ [VWu] ([^\n]+)")
    get_filename_component(instance "${object}" NAME_WE)
    message(FATAL_ERROR "${instance} defines ${CMAKE_MATCH_1} for the whole program: "
                        "make it static, put it into an unnamed namespace, or do without it")
  endif()
endforeach()
