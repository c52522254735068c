# cmake -DOBJCOPY=... "-DOBJECTS=a.o;b.o" -P part_instances.cmake
#
# Makes all that an object file of a kernel instance defines its own, but the one constant of the instance's name. The
# linker merges an inline function or a template over the whole module: it might keep the AVX-512 copy for everyone, and
# an older CPU stops there. It merges by group as well as by name, so groups go too.
#
# The objects keep their times. ninja has noted which headers each was made of, and when. For an object that is newer
# than that note it would compile everything again, at every build.
foreach(object IN LISTS OBJECTS)
  get_filename_component(instance "${object}" NAME_WE)
  execute_process(
    COMMAND "${OBJCOPY}" --preserve-dates --remove-section=.group "--keep-global-symbol=${instance}" "${object}"
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
